"""Checkpoints that are wrong or incomplete are named precisely, before anything is served."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import ConfigurationError
from engine.deploy_config import StageDeployment
from engine.weight_files import INDEX
from pipelines.qwen3_omni.pipeline import (
    build_code2wav,
    build_talker,
    build_thinker,
    describe,
    resolve,
)
from pipelines.qwen3_omni.weights import check_weights

BUILDERS = {"thinker.": build_thinker, "talker.": build_talker, "code2wav.": build_code2wav}


@pytest.fixture
def folder(checkpoint: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint that may be broken."""
    return Path(shutil.copytree(checkpoint, tmp_path / "copy"))


def change_weights(
    folder: Path, name: str, change: Callable[[dict[str, torch.Tensor]], None]
) -> None:
    """Changes the file that holds a weight."""
    for path in sorted(folder.glob("*.safetensors")):
        weights = load_file(path)
        if name in weights:
            change(weights)
            save_file(weights, path)
            return
    raise AssertionError(f"No file holds {name}.")


def change_config(folder: Path, **values: object) -> None:
    """Changes fields of `config.json`."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_whole_checkpoint_has_just_the_weights_that_its_configuration_asks_for(
    checkpoint: Path,
) -> None:
    """Nothing is missing and nothing unused, in any of the three parts."""
    for part in BUILDERS:
        check_weights(checkpoint, part)


@pytest.mark.parametrize(
    "name",
    [
        "thinker.model.layers.1.mlp.experts.2.up_proj.weight",
        "thinker.audio_tower.conv2d2.bias",
        "talker.model.layers.0.mlp.shared_expert_gate.weight",
        "talker.code_predictor.lm_head.2.weight",
        "code2wav.decoder.1.block.0.alpha",
    ],
)
def test_a_missing_weight_is_named(folder: Path, name: str) -> None:
    """Whatever part it belongs to."""
    part = name.partition(".")[0] + "."
    change_weights(folder, name, lambda weights: weights.__delitem__(name))
    with pytest.raises(ConfigurationError, match=f"{name.removeprefix('code2wav.')} is missing"):
        BUILDERS[part](folder, StageDeployment())


def test_an_unknown_weight_and_another_shape_are_named(folder: Path) -> None:
    """A weight that no module takes would be left out in silence."""
    name = "talker.codec_head.weight"
    change_weights(folder, name, lambda w: w.update({"talker.codec_head.bias": torch.zeros(3)}))
    with pytest.raises(ConfigurationError, match=r"codec_head\.bias is not known"):
        build_talker(folder, StageDeployment())
    name = "thinker.model.norm.weight"
    change_weights(folder, name, lambda w: w.update({name: torch.ones(7)}))
    with pytest.raises(ConfigurationError, match=r"norm\.weight has the shape \(7,\)"):
        build_thinker(folder, StageDeployment())


def test_a_missing_shard_is_named(folder: Path) -> None:
    """As when a download was cut off."""
    places = json.loads((folder / INDEX).read_text())["weight_map"]
    shard = folder / places["talker.codec_head.weight"]
    shard.unlink()
    with pytest.raises(ConfigurationError, match=f"names {shard.name}"):
        build_talker(folder, StageDeployment())


def test_another_model_or_one_that_is_mute_is_refused(folder: Path, tmp_path: Path) -> None:
    """Before anything is loaded."""
    with pytest.raises(ConfigurationError, match="comes without weights"):
        resolve(None, tmp_path)
    change_config(folder, enable_audio_output=False)
    with pytest.raises(ConfigurationError, match="has no Talker"):
        resolve(str(folder), tmp_path)
    change_config(folder, model_type="qwen3")
    with pytest.raises(ConfigurationError, match="serves 'qwen3_omni_moe'"):
        resolve(str(folder), tmp_path)


def test_the_voices_are_the_checkpoints(checkpoint: Path, tmp_path: Path) -> None:
    """And the first is the default."""
    description = describe(resolve(str(checkpoint), tmp_path))
    assert [voice.name for voice in description.voices] == ["chelsie", "ethan"]
    assert description.routes == ("chat", "chat_text")
