"""Where a long recording may be cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE

LONGEST_STRETCH = 120 * SAMPLE_RATE
"""Samples that are heard together. Their features take about as long as the words of one window;
those of a whole hour would hold up whoever waits for the recognizer."""

_SEARCHED = 30 * SAMPLE_RATE
_WINDOW = SAMPLE_RATE // 10


def stretches(sound: FloatSamples) -> Iterator[tuple[int, FloatSamples]]:
    """A recording in stretches, each with the sample at which it begins.

    They are cut where the last half minute before their longest length is quietest.
    """
    begin = 0
    while len(sound) - begin > LONGEST_STRETCH:
        latest = begin + LONGEST_STRETCH
        end = latest - _SEARCHED + _quietest(sound[latest - _SEARCHED : latest])
        yield begin, sound[begin:end]
        begin = end
    yield begin, sound[begin:]


def _quietest(sound: FloatSamples) -> int:
    """The middle of the quietest tenth of a second."""
    loudness = np.square(sound).reshape(-1, _WINDOW).sum(axis=1)
    return int(loudness.argmin()) * _WINDOW + _WINDOW // 2
