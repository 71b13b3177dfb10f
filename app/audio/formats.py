"""The audio formats of the API and what clients are told about each."""

from __future__ import annotations

from enum import StrEnum

OUTPUT_SAMPLE_RATE = 24_000
"""Samples a second that every client gets, whatever rate the pipeline works at."""


class AudioFormat(StrEnum):
    """The values of `response_format`."""

    MP3 = "mp3"
    OPUS = "opus"
    AAC = "aac"
    FLAC = "flac"
    WAV = "wav"
    PCM = "pcm"

    @property
    def media_type(self) -> str:
        """The Content-Type of a response in this format."""
        return _MEDIA_TYPES[self]

    @property
    def is_plain(self) -> bool:
        """Whether the bytes are bare samples, so that encoding is a mere conversion."""
        return self in (AudioFormat.WAV, AudioFormat.PCM)


_MEDIA_TYPES = {
    AudioFormat.MP3: "audio/mpeg",
    AudioFormat.OPUS: "audio/ogg",
    AudioFormat.AAC: "audio/aac",
    AudioFormat.FLAC: "audio/flac",
    AudioFormat.WAV: "audio/wav",
    AudioFormat.PCM: "audio/pcm",
}
