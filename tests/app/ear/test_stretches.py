"""Long recordings are cut where nobody speaks, and nothing of them is lost."""

from __future__ import annotations

import numpy as np
import pytest

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE
from app.ear.stretches import LONGEST_STRETCH, stretches


def noise(seconds: float) -> FloatSamples:
    generator = np.random.default_rng(1)
    return generator.uniform(-0.5, 0.5, int(seconds * SAMPLE_RATE)).astype(np.float32)


@pytest.mark.parametrize("seconds", [0, 1, 120, 120.01, 400])
def test_the_stretches_are_the_recording(seconds: float) -> None:
    sound = noise(seconds)
    cut = list(stretches(sound))
    assert np.array_equal(np.concatenate([stretch for _, stretch in cut]), sound)
    assert all(len(stretch) <= LONGEST_STRETCH for _, stretch in cut)
    lengths = [len(stretch) for _, stretch in cut]
    assert [begin for begin, _ in cut] == [sum(lengths[:n]) for n in range(len(cut))]


def test_a_recording_is_cut_in_a_pause() -> None:
    sound = noise(200)
    pause = slice(100 * SAMPLE_RATE, 101 * SAMPLE_RATE)
    sound[pause] = 0
    _, (begin, _) = stretches(sound)
    assert pause.start < begin < pause.stop
