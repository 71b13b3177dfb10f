"""Reference audio against the reference's `create_voice_clone_prompt`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from engine import InvalidRequestError
from pipelines.qwen3_tts.reference_audio import check_reference, read_reference
from pipelines.qwen3_tts.reference_voice import VoiceEncoder
from tests.checkpoints.qwen3_tts import SMALL, Variant
from tests.pipelines.qwen3_tts.conftest import REFERENCE_TEXT, as_file, some_sound
from tests.pipelines.qwen3_tts.reference_process import ReferenceProcess


@pytest.fixture(scope="module")
def encoder(checkpoints: dict[Variant, Path]) -> VoiceEncoder:
    folder = checkpoints[Variant.BASE]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return VoiceEncoder.load(folder, tokenizer, torch.device("cpu"))


@pytest.mark.parametrize(("seconds", "rate"), [(1.3, 24_000), (0.77, 16_000), (2.01, 44_100)])
def test_voices_are_heard_as_by_the_reference(
    encoder: VoiceEncoder,
    reference: ReferenceProcess,
    checkpoints: dict[Variant, Path],
    seconds: float,
    rate: int,
) -> None:
    sound = some_sound(seconds, rate)
    folder = checkpoints[Variant.BASE]
    expected, frames = reference.clone(folder, (sound, rate, REFERENCE_TEXT))
    voice = encoder.encode(as_file(sound, rate), REFERENCE_TEXT)
    assert np.abs(voice.speaker - expected).max() < 1e-4 * np.abs(expected).max()
    assert voice.codes is not None
    assert voice.codes.shape == (int(np.ceil(seconds * 12.5)), SMALL.codebooks)
    assert np.array_equal(voice.codes, frames)
    assert len(voice.text_tokens) > 4


def test_without_a_text_only_the_sound_of_the_voice_is_taken(encoder: VoiceEncoder) -> None:
    voice = encoder.encode(as_file(some_sound(0.5, 24_000), 24_000), None)
    assert voice.codes is None
    assert voice.text_tokens == ()


def test_several_channels_are_mixed() -> None:
    left = some_sound(0.3, 24_000)
    stereo = np.stack([left, -left], axis=1)
    assert np.abs(read_reference(as_file(stereo, 24_000), 24_000)).max() < 1e-6


@pytest.mark.parametrize(
    ("audio", "text", "message"),
    [
        (b"no sound at all", None, "ref_audio is no audio file that can be read"),
        (as_file(np.zeros(100, np.float32), 24_000), None, "ref_audio lasts 0.00 s; it must be"),
        (as_file(np.zeros(8000 * 61, np.float32), 8000), None, "ref_audio lasts 61.00 s"),
        (as_file(np.zeros(8000, np.float32), 8000), "x" * 5000, "ref_text has 5000 characters"),
    ],
    ids=["no audio", "short", "long", "much text"],
)
def test_bad_references_are_named(audio: bytes, text: str | None, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        check_reference(audio, text)


def test_a_broken_file_ends_its_request_only() -> None:
    whole = as_file(some_sound(0.5, 24_000), 24_000)
    with pytest.raises(ValueError, match="cannot be read"):
        read_reference(whole[:20], 24_000)
