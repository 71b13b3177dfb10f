"""What reaches the Thinker's encoder is what the reference's processor makes, bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.request import AudioContent
from pipelines.qwen.hearing import Hearing
from pipelines.qwen2_5_omni.hearing import hearing_of

LONGEST = 480_000
"""Samples that the tiny checkpoint's processor takes at once: 30 s."""


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(count).normal(0.0, 0.1, count).astype(np.float32)


def reference(hearing: Hearing, samples: np.ndarray) -> tuple[torch.Tensor, int]:
    """The features of a sound that is filled up with silence, and its embeddings' number."""
    processor = hearing.processor
    made = processor(text=processor.audio_token, audio=[samples], return_tensors="pt")
    mask = made["feature_attention_mask"][0].bool()
    return made["input_features"][0][:, mask], made["input_ids"].shape[1]


@pytest.mark.parametrize(
    "count", [400, 16_000, 16_001, 16_159, 32_161, 32_500, 143_923, 479_700, 479_999, LONGEST]
)
def test_a_sound_of_any_length_is_heard_as_the_reference_makes_it(
    checkpoint: Path, count: int
) -> None:
    """Although silence that cannot change a feature is left out."""
    hearing = hearing_of(checkpoint)
    samples = noise(count)
    windows = hearing.hear(AudioContent(samples))
    features, tokens = reference(hearing, samples)
    assert torch.equal(hearing.features(samples), features)
    assert sum(window.length for window in windows) == tokens
    heard = torch.cat([window.data["input_audio_features"].data for window in windows], dim=1)
    # The last frame or two of a window may be too few for an embedding.
    assert features.shape[1] - heard.shape[1] in (0, 1, 2)
    assert torch.equal(heard, features[:, : heard.shape[1]])


@pytest.mark.parametrize("more", [1, 200, 40_000])
def test_a_longer_sound_is_heard_in_parts(checkpoint: Path, more: int) -> None:
    hearing = hearing_of(checkpoint)
    samples = noise(LONGEST + more)
    windows = hearing.hear(AudioContent(samples))
    first = hearing.hear(AudioContent(samples[:LONGEST]))
    assert [window.identifier for window in windows[:15]] == [w.identifier for w in first]
    rest = reference(hearing, samples[LONGEST:])[1] if more > 1000 else 0
    assert sum(window.length for window in windows[15:]) == rest
    assert len(hearing.beginning(AudioContent(samples))) == 15 + (more >= 32_040)
