"""Fast speech: length, pitch, and independence of how the sound is split."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.lark.stretch import FASTEST_OWN, FloatArray, Shortener, split_speed

RATE = 24_000


def vowel(seconds: float = 2.0, pitch: float = 150.0) -> FloatArray:
    time = np.arange(int(seconds * RATE)) / RATE
    harmonics = [np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 12)]
    noise = np.random.default_rng(0).normal(size=len(time)) * 0.01
    return (0.1 * np.sum(harmonics, axis=0) + noise).astype(np.float32)


def shortened(sound: FloatArray, factor: float, sizes: list[int]) -> FloatArray:
    shortener, parts, start = Shortener(factor, RATE), [], 0
    for size in sizes:
        parts.append(shortener.shorten(sound[start : start + size], final=False))
        start += size
    parts.append(shortener.shorten(sound[start:], final=True))
    return np.concatenate(parts)


@pytest.mark.parametrize("speed", [0.25, 1.0, 1.4, 1.41, 2.0, 4.0])
def test_both_parts_make_the_speed(speed: float) -> None:
    own, factor = split_speed(speed)
    assert own * factor == pytest.approx(speed)
    assert own <= FASTEST_OWN
    assert factor == 1.0 or speed > FASTEST_OWN


@pytest.mark.parametrize("factor", [1.01, 1.5, 2.0, 4 / 1.4])
def test_any_split_gives_the_same_samples(factor: float) -> None:
    sound, random = vowel(), np.random.default_rng(1)
    whole = shortened(sound, factor, [])
    assert np.array_equal(whole, shortened(sound, factor, [300] * 100))
    sizes = [int(size) for size in random.integers(0, 5000, 15)]
    assert np.array_equal(whole, shortened(sound, factor, sizes))


@pytest.mark.parametrize("factor", [1.5, 2.0, 4 / 1.4])
def test_it_is_shorter_and_has_the_same_pitch(factor: float) -> None:
    sound = vowel()
    result = shortened(sound, factor, [])
    assert len(result) == pytest.approx(len(sound) / factor, abs=0.05 * RATE)
    middle = result[len(result) // 4 :][: RATE // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 8 * len(middle)))
    assert np.argmax(spectrum) * RATE / (8 * len(middle)) == pytest.approx(150.0, abs=3.0)


def test_no_sound_gives_no_sound() -> None:
    assert len(Shortener(2.0, RATE).shorten(np.zeros(0, np.float32), final=True)) == 0
