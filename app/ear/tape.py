"""The sound of one session that is still wanted, at 16 kHz, by its position since the start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.audio.pcm import FloatSamples
from app.audio.resample import StreamResampler
from app.audio.wire_formats import TICKS_PER_SECOND, WireFormat, decode
from app.ear import SAMPLE_RATE

PIECE_BYTES = 32 << 10
"""What `pieces` has in one, two thirds of a second of PCM."""


def samples_of(ticks: int) -> int:
    """A point of time in samples."""
    return ticks * SAMPLE_RATE // TICKS_PER_SECOND


def ticks_of(samples: int) -> int:
    """A position in ticks, such that `samples_of` gives it back."""
    return -(-samples * TICKS_PER_SECOND // SAMPLE_RATE)


def pieces(data: bytes) -> Iterator[bytes]:
    """The bytes of one event in pieces, each of which is a short work.

    An event may hold minutes of sound, and all sessions share the threads that take it in.
    """
    return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))


class Tape:
    """Takes a client's bytes in and keeps them as samples; not for two threads at once."""

    def __init__(self) -> None:
        """Begins empty at position 0."""
        self._begin = 0
        self._buffer = np.zeros(SAMPLE_RATE, np.float32)
        self._first = 0
        self._last = 0
        self._ticks = 0
        self._format = WireFormat.PCM
        self._odd = b""
        self._resampler = StreamResampler(self._format.rate, SAMPLE_RATE)

    @property
    def begin(self) -> int:
        """The first sample that is kept."""
        return self._begin

    @property
    def end(self) -> int:
        """Behind the last sample; the rate conversion may hold some back until `flush`."""
        return self._begin + self._last - self._first

    def append(self, data: bytes, audio_format: WireFormat) -> None:
        """Adds a client's bytes; half a sample waits for its other half."""
        if audio_format is not self._format:
            self.flush()
            self._format, self._odd = audio_format, b""
            self._resampler = StreamResampler(audio_format.rate, SAMPLE_RATE)
        data = self._odd + data
        whole = len(data) - len(data) % audio_format.bytes_per_sample
        data, self._odd = data[:whole], data[whole:]
        self._ticks += audio_format.ticks(len(data))
        if data:
            self._add(self._resampler.process(decode(data, audio_format)))

    def flush(self) -> None:
        """Brings everything in that the rate conversion holds back."""
        self._add(self._resampler.process(np.zeros(0, np.float32), last=True))
        self._resampler = StreamResampler(self._format.rate, SAMPLE_RATE)
        # Rounding at the ends of conversions must not add up.
        missing = samples_of(self._ticks) - self.end
        if missing > 0:
            self._add(np.zeros(missing, np.float32))
        elif missing < 0:
            self._last += missing

    def drop_half_sample(self) -> None:
        """Forgets the half of a sample whose other half never came."""
        self._odd = b""

    def drop_before(self, position: int) -> None:
        """Forgets everything before a position."""
        position = min(position, self.end)
        if position > self._begin:
            self._first += position - self._begin
            self._begin = position

    def cut(self, start: int, end: int) -> FloatSamples:
        """A copy of a stretch, as far as it is here."""
        low = self._first + max(0, start - self._begin)
        high = min(self._last, self._first + end - self._begin)
        return self._buffer[low : max(low, high)].copy()

    def _add(self, samples: FloatSamples) -> None:
        if self._last + len(samples) > len(self._buffer):
            self._make_room(len(samples))
        self._buffer[self._last : self._last + len(samples)] = samples
        self._last += len(samples)

    def _make_room(self, size: int) -> None:
        kept = self._buffer[self._first : self._last]
        # Twice what is needed, so that sound is moved seldom and memory follows what is kept.
        self._buffer = np.zeros(2 * (len(kept) + size), np.float32)
        self._buffer[: len(kept)] = kept
        self._first, self._last = 0, len(kept)
