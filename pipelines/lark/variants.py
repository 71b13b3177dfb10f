"""Variants of the trained voice: pitch and spectral envelope moved along frequency."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pipelines.lark.spectrum import BINS, SAMPLE_RATE, VOICED_ABOVE, WINDOW

FloatArray = npt.NDArray[np.float32]

_UNVOICED_SPACING: Final = 200.0
"""Hertz between the places where the harmonic branch is read in a frame without pitch."""


def vary(branches: FloatArray, f0: FloatArray, f0_scale: float, formant_scale: float) -> FloatArray:
    """Return the branches of a variant.

    The free branch stays as it is: its phases only fit the place they were made for.

    Args:
        branches: [n, 5, BINS] log harmonic gain, harmonic phase, log noise gain, free branch.
        f0: [n] the decoder's own pitch in hertz, 0 where unvoiced.
        f0_scale: factor on the pitch.
        formant_scale: factor on the frequencies of the envelope.
    """
    changed = branches.copy()
    changed[:, 2] = _warp(branches[:, 2], formant_scale)
    changed[:, :2] = _moved_harmonics(branches[:, :2], f0, f0_scale, formant_scale)
    return changed


def _warp(branches: FloatArray, scale: float) -> FloatArray:
    """Stretch the last axis [..., BINS] along frequency."""
    position = np.minimum(np.arange(BINS) / scale, BINS - 1.0)
    lower = np.minimum(position.astype(np.int64), BINS - 2)
    share = (position - lower).astype(np.float32)
    low, high = branches[..., lower], branches[..., lower + 1]
    warped: FloatArray = low + (high - low) * share
    return warped


def _moved_harmonics(
    rows: FloatArray, f0: FloatArray, f0_scale: float, formant_scale: float
) -> FloatArray:
    """Give every harmonic of the scaled pitch the gain and phase that belong to its place.

    The harmonic branch is only meant at the harmonics of the pitch that the decoder knows, so it
    is read there: the gain between the two nearest of them, the phase at the nearest.

    Args:
        rows: [n, 2, BINS] log gain and phase.
        f0: [n] the decoder's own pitch in hertz, 0 where unvoiced.
        f0_scale: factor on the pitch.
        formant_scale: factor on the frequencies of the envelope.
    """
    spacing = np.where(f0 > VOICED_ABOVE, f0, _UNVOICED_SPACING)[:, None] * (WINDOW / SAMPLE_RATE)
    harmonic = np.maximum(np.round(np.arange(BINS) / (spacing * f0_scale)), 1.0)
    place = np.maximum(harmonic * (f0_scale / formant_scale), 1.0)
    below = np.floor(place)
    share = (place - below).astype(np.float32)
    low = _read(rows[:, 0], below * spacing)
    high = _read(rows[:, 0], (below + 1) * spacing)
    # Fewer harmonics carry the same power when each is louder, and the reverse.
    loudness = np.float32(0.5 * np.log(f0_scale))
    gain = low + (high - low) * share + loudness
    return np.stack([gain, _read(rows[:, 1], np.round(place) * spacing)], axis=1)


def _read(branch: FloatArray, position: npt.NDArray[np.float64]) -> FloatArray:
    """Read a branch [n, BINS] at the bins nearest to `position` [n, BINS]."""
    bins = np.minimum(np.round(position), BINS - 1).astype(np.int64)
    return np.take_along_axis(branch, bins, axis=1)
