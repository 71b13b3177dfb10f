"""The codec of `lark`: one group of five codes a phoneme, turned into the decoder's input frames.

A group is (duration, f0 contour, energy contour, h stage 1, h stage 2). A phoneme with duration
class d lasts d + 1 units of 25 ms, which is two frames a unit at 80 frames a second. Contours are
four points spread over the phoneme and interpolated between them, never across a phoneme's border,
so that a phoneme's frames depend on nothing that comes later.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

FRAME_RATE: Final = 80
UNIT_FRAMES: Final = 2
"""Frames in one duration unit of 25 ms."""

POINTS: Final = 4
"""Points of an f0 or energy contour."""

ENCODING_SIZE: Final = 128
FEATURE_SIZE: Final = ENCODING_SIZE + 2
"""Channels of a frame: h, log(1 + f0) / 5, energy / 5."""

SLOWEST: Final = 0.25
FASTEST: Final = 4.0

_CHANNEL_SCALE: Final = 5.0

_SQUEEZED_ABOVE: Final = 2.0
"""Speed up to which no phoneme is shorter than a unit. Fast speech shortens vowels and pauses; a
consonant of less than a unit would be lost."""

_LARGEST_DEBT: Final = 16.0
"""Most frames that longer phonemes save for shorter ones, 0.2 s."""


@dataclass
class CodecState:
    """What one request carries from phoneme to phoneme.

    Attributes:
        speed: 2.0 speaks twice as fast.
        owed: frames that rounding has not yet given out; below zero, frames that short phonemes
            had too many and longer ones are to save.
        unslowed: the fraction of a frame that the tempo has not yet given out. It is kept apart, so
            that every speed scales the same whole frames.
        pitch: normalised log-f0 at the end of the last phoneme, or None when it ended unvoiced.
    """

    speed: float = 1.0
    owed: float = 0.0
    unslowed: float = 0.0
    pitch: float | None = None

    def __post_init__(self) -> None:
        if not SLOWEST <= self.speed <= FASTEST:
            raise ValueError(f"Speed must lie between {SLOWEST} and {FASTEST}, not {self.speed!r}.")


@dataclass(frozen=True)
class PhonemeFrames:
    """The decoder's input for some phonemes.

    Attributes:
        features: [F, 130] at 80 frames a second.
        frames: [n] how many of the frames belong to each phoneme; they sum to F.
    """

    features: FloatArray
    frames: IntArray


@dataclass(frozen=True)
class Codebooks:
    """The tables of the codec.

    Attributes:
        pitch: [512, 8] four voicing probabilities, then four voiced normalised log-f0 values.
        energy: [256, 4].
        encoding: [2, 512, 128] residual stages of the phoneme encoding h.
        pitch_mean: mean of the voice's log-f0.
        pitch_deviation: standard deviation of the voice's log-f0.
        glide: frames over which a jump of pitch at a phoneme border is smoothed, 0 for none.
        tempo: what speed 1.0 means against the coded durations. The likeliest durations are on
            the whole shorter than the voice's own; a tempo below one makes up for it.
        energy_range: multiplies how far an energy lies from the mean of the table.
    """

    pitch: FloatArray
    energy: FloatArray
    encoding: FloatArray
    pitch_mean: float
    pitch_deviation: float
    glide: int = 0
    tempo: float = 1.0
    energy_range: float = 1.0


class Codec:
    """Codes to decoder features, exact under any split of the phonemes into calls."""

    def __init__(self, codebooks: Codebooks) -> None:
        self.codebooks = codebooks
        middle = codebooks.energy.mean()
        self._energy = (codebooks.energy - middle) * codebooks.energy_range + middle

    def features(self, state: CodecState, codes: IntArray) -> PhonemeFrames:
        """Return the frames of some phonemes and advance the state.

        Args:
            state: of this request; changed in place.
            codes: [n, 5] groups in order of speaking.
        """
        groups = np.asarray(codes, np.int64).reshape(-1, 5)
        frames = np.asarray(
            [self._frame_count(state, int(code)) for code in groups[:, 0]], np.int64
        )
        features = np.empty((int(frames.sum()), FEATURE_SIZE), np.float32)
        tables = self.codebooks
        encodings = tables.encoding[0, groups[:, 3]] + tables.encoding[1, groups[:, 4]]
        features[:, :ENCODING_SIZE] = np.repeat(encodings, frames, axis=0)
        start = 0
        for group, count in zip(groups, frames.tolist(), strict=True):
            end = start + count
            f0 = self._pitch(state, tables.pitch[group[1]], count)
            features[start:end, ENCODING_SIZE] = np.log1p(f0) / _CHANNEL_SCALE
            energy = interpolation(count) @ self._energy[group[2]]
            features[start:end, ENCODING_SIZE + 1] = energy / _CHANNEL_SCALE
            start = end
        return PhonemeFrames(features, frames)

    def _frame_count(self, state: CodecState, duration_code: int) -> int:
        slowed = (duration_code + 1) * UNIT_FRAMES / self.codebooks.tempo + state.unslowed
        natural = int(np.floor(slowed + 1e-9))
        state.unslowed = slowed - natural
        exact = natural / state.speed + state.owed
        least = UNIT_FRAMES if state.speed <= _SQUEEZED_ABOVE else 1
        count = max(int(np.floor(exact + 1e-9)), least)
        state.owed = max(exact - count, -_LARGEST_DEBT)
        return count

    def _pitch(self, state: CodecState, entry: FloatArray, count: int) -> FloatArray:
        """Return f0 in hertz for the frames of one phoneme, 0 where unvoiced, [count]."""
        if count == 0:
            return np.zeros(0, np.float32)
        tables = self.codebooks
        voicing, voiced_value = entry[:POINTS], entry[POINTS:]
        weights = interpolation(count)
        probability = weights @ voicing
        pitch = (weights @ voiced_value) / np.maximum(probability, 0.05)
        voiced = probability > 0.5
        if tables.glide and state.pitch is not None and voiced[0]:
            fade = np.maximum(1.0 - (np.arange(count) + 1.0) / (tables.glide + 1.0), 0.0)
            pitch = pitch + (state.pitch - pitch[0]) * fade
        state.pitch = float(pitch[-1]) if voiced[-1] else None
        f0 = np.exp(pitch * tables.pitch_deviation + tables.pitch_mean)
        return np.where(voiced, f0, 0.0).astype(np.float32)


def frame_f0(features: FloatArray) -> FloatArray:
    """Return f0 in hertz as the frames [F, 130] carry it, [F]."""
    return np.expm1(features[:, ENCODING_SIZE] * _CHANNEL_SCALE).astype(np.float32)


@functools.lru_cache(maxsize=512)
def interpolation(count: int) -> FloatArray:
    """Return the weights [count, 4] that spread four contour points over `count` frames."""
    position = np.clip((np.arange(count) + 0.5) / max(count, 1) * POINTS - 0.5, 0, POINTS - 1)
    distance = np.abs(position[:, None] - np.arange(POINTS)[None, :])
    return np.maximum(1.0 - distance, 0.0).astype(np.float32)


@functools.lru_cache(maxsize=128)
def averaging(count: int) -> FloatArray:
    """Return the weights [4, count] that reduce `count` frames to four contour points.

    Each point averages its quarter of the phoneme; a quarter that is shorter than a frame takes
    the frame it lies in.
    """
    edges = np.arange(POINTS + 1) * count / POINTS
    frame = np.arange(count)
    overlap = np.minimum(edges[1:, None], frame + 1) - np.maximum(edges[:-1, None], frame)
    overlap = np.maximum(overlap, 0.0)
    return (overlap / overlap.sum(axis=1, keepdims=True)).astype(np.float32)
