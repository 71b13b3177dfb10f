"""The header of a WAV file with one channel of 16-bit samples."""

from __future__ import annotations

import struct
from enum import StrEnum

from app.audio.pcm import BYTES_PER_SAMPLE

HEADER_BYTES = 44

_BYTES_BEHIND_RIFF_SIZE = HEADER_BYTES - 8
"""What the RIFF size counts besides the samples: everything behind its own field."""


class UnknownWavSize(StrEnum):
    """What a streamed WAV says about its size, which nobody knows yet when the header is sent."""

    UNSIGNED = "unsigned"
    """0xFFFFFFFF in both fields, as OpenAI sends; FFmpeg and browsers read on to the end."""
    SIGNED = "signed"
    """The largest sizes below 2^31, for players that read the fields as signed numbers."""

    @property
    def sizes(self) -> tuple[int, int]:
        """The RIFF size and the data size."""
        if self is UnknownWavSize.UNSIGNED:
            return 0xFFFFFFFF, 0xFFFFFFFF
        data_size = (0x7FFFFFFF - _BYTES_BEHIND_RIFF_SIZE) & ~1
        return data_size + _BYTES_BEHIND_RIFF_SIZE, data_size


def streamed_header(sample_rate: int, unknown_size: UnknownWavSize) -> bytes:
    """The header of a WAV whose length is not known yet."""
    return _header(sample_rate, *unknown_size.sizes)


def sized_header(sample_rate: int, data_size: int) -> bytes:
    """The header of a WAV with `data_size` bytes of samples.

    Raises:
        ValueError: The samples do not fit into a WAV, which ends at 4 GiB.
    """
    riff_size = data_size + _BYTES_BEHIND_RIFF_SIZE
    if riff_size > 0xFFFFFFFF:
        raise ValueError(f"{data_size} bytes of samples do not fit into a WAV file.")
    return _header(sample_rate, riff_size, data_size)


def _header(sample_rate: int, riff_size: int, data_size: int) -> bytes:
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_size,
        b"WAVE",
        b"fmt ",
        16,  # size of the format chunk
        1,  # uncompressed PCM
        1,  # channels
        sample_rate,
        sample_rate * BYTES_PER_SAMPLE,
        BYTES_PER_SAMPLE,
        8 * BYTES_PER_SAMPLE,
        b"data",
        data_size,
    )
