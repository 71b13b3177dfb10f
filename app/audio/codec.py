"""MP3, Opus, AAC and FLAC by FFmpeg's codecs and containers."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import cast

import av
import numpy as np
import numpy.typing as npt
from av.audio.stream import AudioStream

from app.audio import pcm
from app.audio.formats import OUTPUT_SAMPLE_RATE, AudioFormat
from app.audio.pcm import FloatSamples


@dataclass(frozen=True, slots=True)
class Codec:
    """How one compressed format is made.

    Attributes:
        container: FFmpeg's name of the container.
        encoder: FFmpeg's name of the encoder.
        sample_format: What the encoder is fed: `s16`, `s16p`, `flt` or `fltp`.
        bit_rate: Bits a second; None lets a lossless codec take what it needs.
        encoder_options: Options of the encoder.
        container_options: Options of the container.
        streaming_options: Further ones when bytes are sent as they come.
    """

    container: str
    encoder: str
    sample_format: str
    bit_rate: int | None = None
    encoder_options: dict[str, str] = field(default_factory=dict)
    container_options: dict[str, str] = field(default_factory=dict)
    streaming_options: dict[str, str] = field(default_factory=dict)


CODECS = {
    AudioFormat.MP3: Codec(
        container="mp3",
        encoder="libmp3lame",
        sample_format="s16p",
        bit_rate=80_000,
        # Without the bit reservoir each frame leaves as soon as it is made: the first after 60 ms
        # of sound instead of 100, and a listener may join or lose one without losing its followers.
        encoder_options={"reservoir": "0"},
        streaming_options={"write_xing": "0", "id3v2_version": "0"},
    ),
    AudioFormat.OPUS: Codec(
        container="ogg",
        encoder="libopus",
        sample_format="flt",
        bit_rate=40_000,
        encoder_options={"application": "voip", "frame_duration": "20"},
        # One packet a page: the first page leaves after 20 ms of sound instead of a second.
        streaming_options={"page_duration": "20000"},
    ),
    AudioFormat.AAC: Codec(
        container="adts",
        encoder="aac",
        sample_format="fltp",
        bit_rate=64_000,
    ),
    AudioFormat.FLAC: Codec(
        container="flac",
        encoder="flac",
        sample_format="s16",
        # Level 2 keeps blocks at 24 ms; the better levels wait for 96 ms and save two per cent.
        encoder_options={"compression_level": "2"},
        container_options={"metadata_header_padding": "0"},
    ),
}


class _ForwardSink:
    """A file that can only be written to, so that containers never go back to patch a header."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def write(self, data: bytes) -> int:
        self._pending += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._pending)
        self._pending.clear()
        return taken


class ContainerEncoder:
    """One stream of a compressed format."""

    def __init__(self, codec: Codec, *, seekable: bool) -> None:
        """Opens codec and container.

        Args:
            codec: How the format is made.
            seekable: Whether the bytes are kept until the end, so that headers can be completed.
        """
        self._codec = codec
        self._position = 0
        self._forward = _ForwardSink()
        self._kept = io.BytesIO() if seekable else None
        options = dict(codec.container_options)
        if not seekable:
            options |= {"flush_packets": "1", **codec.streaming_options}
        self._container = av.open(
            self._forward if self._kept is None else self._kept,
            "w",
            format=codec.container,
            options=options,
        )
        stream = self._container.add_stream(
            codec.encoder, rate=OUTPUT_SAMPLE_RATE, options=dict(codec.encoder_options)
        )
        self._stream = cast(AudioStream, stream)
        context = self._stream.codec_context
        context.layout = "mono"
        context.format = codec.sample_format
        if codec.bit_rate is not None:
            context.bit_rate = codec.bit_rate
        self._closed = False

    @property
    def kept(self) -> int:
        """Bytes that are kept until the end, so that headers can be completed."""
        return 0 if self._kept is None or self._closed else self._kept.tell()

    def encode(self, samples: FloatSamples) -> bytes:
        """Encodes samples and returns the bytes that are ready."""
        if len(samples):
            self._container.mux(self._stream.encode(self._frame(samples)))
        return self._take()

    def finish(self) -> bytes:
        """Flushes codec and container and returns the rest of the bytes."""
        if self._position == 0:
            # Containers write their header with the first packet; without one there is no file.
            self.encode(np.zeros(1, np.float32))
        self._container.mux(self._stream.encode(None))
        self._close_container()
        if self._kept is not None:
            return self._kept.getvalue()
        return self._forward.take()

    def close(self) -> None:
        """Frees codec and container.

        Dropping the last reference is not enough: container, stream and codec refer to each other
        and would keep their native memory until the next full garbage collection.
        """
        self._close_container()

    def _take(self) -> bytes:
        return b"" if self._kept is not None else self._forward.take()

    def _close_container(self) -> None:
        if not self._closed:
            self._closed = True
            self._container.close()

    def _frame(self, samples: FloatSamples) -> av.AudioFrame:
        # Rounding to 16 bits happens in one place for all formats, so that FLAC decodes to exactly
        # the samples that PCM carries.
        integer = self._codec.sample_format.startswith("s16")
        data: npt.NDArray[np.int16] | npt.NDArray[np.float32]
        data = pcm.to_int16(samples) if integer else pcm.to_unit_range(samples)
        frame = av.AudioFrame.from_ndarray(
            data.reshape(1, -1), format=self._codec.sample_format, layout="mono"
        )
        frame.sample_rate = OUTPUT_SAMPLE_RATE
        frame.pts = self._position
        self._position += len(samples)
        return frame
