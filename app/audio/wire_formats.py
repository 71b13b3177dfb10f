"""The audio formats of the protocols, G.711 among them.

One clock serves all of them: a *tick* is a 48 000th of a second, so that a sample of each format
lasts a whole number of ticks.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from app.audio import pcm
from app.audio.formats import OUTPUT_SAMPLE_RATE
from app.audio.pcm import FloatSamples
from app.audio.resample import StreamResampler

TICKS_PER_SECOND = 48_000
TICKS_PER_MILLISECOND = TICKS_PER_SECOND // 1000

_BIAS = 0x84


class WireFormat(StrEnum):
    """A format; PCM is 16-bit samples at 24 kHz unless its name says otherwise."""

    PCM = "audio/pcm"
    PCM_16_KHZ = "audio/pcm;rate=16000"
    MU_LAW = "audio/pcmu"
    A_LAW = "audio/pcma"

    @property
    def rate(self) -> int:
        """Samples a second."""
        return _RATES.get(self, 8_000)

    @property
    def linear(self) -> bool:
        """Whether it is plain samples and not G.711."""
        return self in _RATES

    @property
    def bytes_per_sample(self) -> int:
        """Bytes of one sample."""
        return 2 if self.linear else 1

    @property
    def ticks_per_sample(self) -> int:
        """Ticks that a sample lasts."""
        return TICKS_PER_SECOND // self.rate

    def ticks(self, size: int) -> int:
        """How long so many bytes last, in ticks; half a sample counts nothing."""
        return size // self.bytes_per_sample * self.ticks_per_sample

    def size(self, ticks: int) -> int:
        """How many bytes last so long."""
        return ticks // self.ticks_per_sample * self.bytes_per_sample

    def silence(self, size: int) -> bytes:
        """So many bytes of silence."""
        if self.linear:
            return bytes(size)
        return (b"\xff" if self is WireFormat.MU_LAW else b"\xd5") * size

    def as_wire(self) -> dict[str, object]:
        """The format as clients see it."""
        if self.linear:
            return {"type": WireFormat.PCM.value, "rate": self.rate}
        return {"type": self.value}


_RATES = {WireFormat.PCM: OUTPUT_SAMPLE_RATE, WireFormat.PCM_16_KHZ: 16_000}
"""Samples a second of the formats that are plain samples."""


def milliseconds(ticks: int) -> int:
    """Ticks as whole milliseconds."""
    return ticks // TICKS_PER_MILLISECOND


def _mu_law_table() -> npt.NDArray[np.int16]:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    magnitude = (((code & 0x0F) << 3) + _BIAS) << ((code >> 4) & 0x07)
    magnitude -= _BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _a_law_table() -> npt.NDArray[np.int16]:
    code = np.arange(256, dtype=np.int32) ^ 0x55
    exponent = (code >> 4) & 0x07
    magnitude = ((code & 0x0F) << 4) + 8
    magnitude = np.where(
        exponent > 0, (magnitude + 0x100) << np.maximum(exponent - 1, 0), magnitude
    )
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


def _nearest_code(table: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
    """For each 16-bit sample, counted from the lowest, the code whose value is nearest."""
    order = np.argsort(table, kind="stable")
    levels = table[order].astype(np.int64)
    borders = (levels[:-1] + levels[1:]) / 2
    samples = np.arange(-32768, 32768)
    return order[np.searchsorted(borders, samples)].astype(np.uint8)


_DECODE = {WireFormat.MU_LAW: _mu_law_table(), WireFormat.A_LAW: _a_law_table()}
_ENCODE = {audio_format: _nearest_code(table) for audio_format, table in _DECODE.items()}


def decode(data: bytes, audio_format: WireFormat) -> FloatSamples:
    """A client's bytes as float samples at the format's own rate; half a sample is left out."""
    if audio_format.linear:
        integers = np.frombuffer(data, "<i2", count=len(data) // 2)
    else:
        integers = _DECODE[audio_format][np.frombuffer(data, np.uint8)]
    return integers.astype(np.float32) / np.float32(32768.0)


def encode(samples: FloatSamples, audio_format: WireFormat) -> bytes:
    """Float samples at the format's own rate as the client's bytes."""
    if audio_format.linear:
        return pcm.to_bytes(samples)
    integers = pcm.to_int16(samples).astype(np.int32) + 32768
    return _ENCODE[audio_format][integers].tobytes()


class WireEncoder:
    """One answer's sound as a client's bytes; an `AudioEncoder`, so that it runs on a thread."""

    kept = 0

    def __init__(self, source_rate: int, audio_format: WireFormat) -> None:
        """`source_rate` is what comes in, in samples a second."""
        self._format = audio_format
        self._resampler = StreamResampler(source_rate, audio_format.rate)

    def encode(self, samples: FloatSamples) -> bytes:
        """Converts samples that follow the ones before."""
        return encode(self._resampler.process(samples), self._format)

    def finish(self) -> bytes:
        """The rest that the rate conversion held back."""
        rest = self._resampler.process(np.zeros(0, np.float32), last=True)
        return encode(rest, self._format)

    def close(self) -> None:
        """Holds nothing that would have to be freed."""
