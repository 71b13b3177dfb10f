"""The recipe from scratch in its short mode: losses fall, the export loads, it is no silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

for package in ("chatterbot_corpus", "chitchat_dataset", "hibari", "onnx", "onnxruntime"):
    pytest.importorskip(package, reason="the recipe's own dependencies are not installed")

from recipes.lark import __main__ as recipe  # noqa: E402
from recipes.lark.speak import Voice  # noqa: E402
from recipes.lark.teacher import FeatureTeacher  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything the recipe makes in a few seconds of training."""
    data = tmp_path_factory.mktemp("lark")
    torch.manual_seed(0)
    recipe.run(data, data / "weights", minutes=0.4, short=True)
    return data


def read_log(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_talker_learns(folder: Path) -> None:
    last = read_log(folder / "talker.jsonl")[-1]
    uniform = float(np.log([32, 512, 256, 512, 512]).sum())
    assert last["held_out"]["total"] < uniform - 1


def test_the_decoder_learns(folder: Path) -> None:
    first, *_, last = read_log(folder / "code2wav.jsonl")
    assert sum(last["held_out"].values()) < sum(first["held_out"].values())


def test_the_export_loads_and_speaks(folder: Path) -> None:
    teacher, voice = FeatureTeacher(), Voice(folder / "weights")
    ids = [teacher.ids(phonemes) for phonemes in teacher.phonemes("Good morning.")]
    samples = voice.samples(voice.codes(ids))
    assert 0.3 * 24_000 < len(samples) < 30 * 24_000
    assert np.sqrt(np.mean(samples**2)) > 0.003


def test_a_finished_recipe_has_nothing_left_to_do(folder: Path) -> None:
    before = len(read_log(folder / "talker.jsonl"))
    recipe.run(folder, folder / "weights", minutes=0.4, short=True)
    after = read_log(folder / "talker.jsonl")
    assert len(after) == before + 1
    assert after[-1]["steps"] == after[-2]["steps"]
