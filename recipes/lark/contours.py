"""Pitch and energy contours, four points a phoneme, and the trimming of leading silence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.lark.codec import POINTS, UNIT_FRAMES, averaging
from recipes.lark.features import Features

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

VOICED_ABOVE = 80.0
"""Teacher f0 below this many hertz is the slope of a voicing transition, not a pitch."""

FIRST_SILENCE = 2
"""Units of silence kept before the first sentence: speech starts 50 ms into the sound."""

BETWEEN_SILENCE = 8
"""Units of silence kept before every later sentence, 200 ms of the pause between two sentences."""

LONGEST_DURATION = 32


@dataclass(frozen=True)
class Contours:
    """Contours of P phonemes.

    Attributes:
        durations: [P] units of 25 ms.
        pitch: [P, 8] voicing at four points, then voicing × normalised log-f0.
        energy: [P, 4].
    """

    durations: IntArray
    pitch: FloatArray
    energy: FloatArray


def frame_starts(features: Features) -> IntArray:
    """Return the first frame of every phoneme of the corpus, [P]."""
    frames = features.durations.astype(np.int64) * UNIT_FRAMES
    return np.cumsum(frames) - frames


def pitch_statistics(features: Features) -> tuple[float, float]:
    """Return mean and standard deviation of the voice's log-f0."""
    f0 = features.f0.astype(np.float32)
    logarithm = np.log(f0[f0 > VOICED_ABOVE])
    return float(logarithm.mean()), float(logarithm.std())


def contours(
    features: Features,
    starts: IntArray,
    durations: IntArray,
    statistics: tuple[float, float],
) -> Contours:
    """Return the contours of the phonemes that begin at `starts` and last `durations` units."""
    mean, deviation = statistics
    f0 = features.f0.astype(np.float32)
    voiced = (f0 > VOICED_ABOVE).astype(np.float32)
    value = np.where(f0 > VOICED_ABOVE, (np.log(np.maximum(f0, 1.0)) - mean) / deviation, 0.0)
    energy = features.energy.astype(np.float32)
    pitch_points = np.zeros((len(starts), 2 * POINTS), np.float32)
    energy_points = np.zeros((len(starts), POINTS), np.float32)
    for duration in np.unique(durations):
        chosen = np.flatnonzero(durations == duration)
        count = int(duration) * UNIT_FRAMES
        frames = starts[chosen][:, None] + np.arange(count)
        weights = averaging(count).T
        pitch_points[chosen, :POINTS] = voiced[frames] @ weights
        pitch_points[chosen, POINTS:] = value[frames] @ weights
        energy_points[chosen] = energy[frames] @ weights
    return Contours(durations, pitch_points, energy_points)


def trimmed(features: Features, silence: int) -> tuple[IntArray, IntArray]:
    """Return starts and durations of all phonemes with at most `silence` units in leading pads."""
    starts = frame_starts(features)
    durations = np.clip(features.durations.astype(np.int64), 1, LONGEST_DURATION)
    leading = features.phoneme_offsets[:-1]
    kept = np.minimum(durations[leading], silence)
    starts[leading] += (features.durations[leading] - kept) * UNIT_FRAMES
    durations[leading] = kept
    return starts, durations
