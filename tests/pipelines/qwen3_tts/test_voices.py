"""What clients may ask of each variant, and how the deployments read."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import InvalidRequestError, SpeechParameters
from engine.deploy_config import load_deploy_config
from pipelines.qwen3_tts.configuration import read_checkpoint
from pipelines.qwen3_tts.pipeline import FOLDER, PIPELINE, describe, inspect_text, resolve
from pipelines.qwen3_tts.sampling import SamplingDefaults
from pipelines.qwen3_tts.voices import OPENAI_VOICES, find_language, find_speaker
from tests.checkpoints.qwen3_tts import Variant

Checkpoints = dict[Variant, Path]


@pytest.mark.parametrize(
    ("variant", "names"),
    [
        (Variant.CUSTOM_VOICE, {"vivian", "ryan", "eric"}),
        (Variant.VOICE_DESIGN, {"designed"}),
        (Variant.BASE, {"reference"}),
    ],
)
def test_every_variant_has_its_voices_and_all_aliases(
    checkpoints: Checkpoints, variant: Variant, names: set[str]
) -> None:
    folder = checkpoints[variant]
    description = describe(resolve(str(folder), folder))
    assert {voice.name for voice in description.voices} == names
    assert sorted(a for v in description.voices for a in v.aliases) == sorted(OPENAI_VOICES)
    assert description.sample_rate == 24_000


def test_speakers_are_found_by_any_of_their_names(checkpoints: Checkpoints) -> None:
    checkpoint = read_checkpoint(checkpoints[Variant.CUSTOM_VOICE])
    assert find_speaker(checkpoint, "Vivian") == "vivian"
    assert find_speaker(checkpoint, "alloy") in checkpoint.speakers
    assert find_speaker(checkpoint, None) in checkpoint.speakers
    with pytest.raises(InvalidRequestError, match="voice is 'nobody'; this checkpoint has: "):
        find_speaker(checkpoint, "nobody")
    assert find_speaker(read_checkpoint(checkpoints[Variant.BASE]), "nova") is None


@pytest.mark.parametrize(
    ("language", "speaker", "name"),
    [
        (None, None, None),
        ("auto", "ryan", None),
        ("en", None, "english"),
        ("de-CH", None, "german"),
        ("zh_TW", None, "chinese"),
        ("English", None, "english"),
        (None, "eric", "sichuan_dialect"),
        ("zh", "eric", "sichuan_dialect"),
        ("en", "eric", "english"),
    ],
)
def test_languages_are_found_by_tag_or_name(
    checkpoints: Checkpoints, language: str | None, speaker: str | None, name: str | None
) -> None:
    checkpoint = read_checkpoint(checkpoints[Variant.CUSTOM_VOICE])
    wanted = None if name is None else checkpoint.languages[name]
    assert find_language(checkpoint, language, speaker) == wanted


@pytest.mark.parametrize("language", ["fr", "sichuan_dialect", "klingon"])
def test_other_languages_are_refused(checkpoints: Checkpoints, language: str) -> None:
    checkpoint = read_checkpoint(checkpoints[Variant.CUSTOM_VOICE])
    with pytest.raises(InvalidRequestError, match="speaks: chinese, english, german"):
        find_language(checkpoint, language, None)


def test_requests_are_sampled_as_the_checkpoint_says(checkpoints: Checkpoints) -> None:
    defaults = SamplingDefaults.of(checkpoints[Variant.BASE])
    usual = defaults.of_request(SpeechParameters(seed=7))
    assert (usual.temperature, usual.top_k, usual.top_p) == (0.9, 50, 1.0)
    assert (usual.repetition_penalty, usual.minimum_steps, usual.maximum_steps) == (1.05, 2, 2048)
    assert (usual.codes.temperature, usual.codes.top_k, usual.seed) == (0.9, 50, 7)
    cooler = defaults.of_request(SpeechParameters(temperature=0.3))
    assert (cooler.temperature, cooler.codes.temperature) == (0.3, 0.9)
    greedy = defaults.of_request(SpeechParameters(temperature=0.0))
    assert (greedy.temperature, greedy.codes.temperature) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["deploy.yaml", "deploy-gpu.yaml", "deploy-two-gpus.yaml"])
def test_the_deployments_are_valid(name: str) -> None:
    stages = [stage.name for stage in PIPELINE.stages]
    deployment = load_deploy_config(FOLDER / name, stages)
    assert set(deployment.stages) == set(stages)


def test_texts_without_a_letter_or_digit_have_nothing_to_say() -> None:
    assert inspect_text("12!").speakable
    assert inspect_text("漢").speakable
    assert not inspect_text(" …!? ").speakable
