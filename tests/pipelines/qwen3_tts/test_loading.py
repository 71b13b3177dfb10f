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
from pipelines.qwen3_tts.pipeline import build_code2wav, build_reference, build_talker, resolve
from tests.checkpoints.qwen3_tts import Variant


@pytest.fixture
def folder(checkpoints: dict[Variant, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoints[Variant.BASE], tmp_path / "copy"))


def change_weights(
    folder: Path, containing: str, change: Callable[[dict[str, torch.Tensor]], None]
) -> None:
    """Changes the file of a folder that holds a weight."""
    for path in sorted(folder.glob("*.safetensors")):
        weights = load_file(path)
        if containing in weights:
            change(weights)
            save_file(weights, path)
            return
    raise AssertionError(f"No file holds {containing}.")


def change_config(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_missing_weight_of_the_talker_is_named(folder: Path) -> None:
    name = "talker.code_predictor.lm_head.3.weight"
    change_weights(folder, name, lambda weights: weights.__delitem__(name))
    with pytest.raises(ConfigurationError, match=f"{name} is missing"):
        build_talker(folder, StageDeployment())


def test_a_weight_that_the_talker_does_not_know_is_named(folder: Path) -> None:
    name = "talker.codec_head.weight"
    change_weights(folder, name, lambda w: w.update({"talker.codec_head.bias": torch.zeros(3)}))
    with pytest.raises(ConfigurationError, match=r"codec_head\.bias is not known"):
        build_talker(folder, StageDeployment())


def test_a_weight_of_another_shape_is_named(folder: Path) -> None:
    name = "talker.model.norm.weight"
    change_weights(folder, name, lambda weights: weights.update({name: torch.ones(7)}))
    with pytest.raises(ConfigurationError, match=rf"{name} has the shape \(7,\), not \(96,\)"):
        build_talker(folder, StageDeployment())


def test_a_missing_shard_is_named(folder: Path) -> None:
    (folder / "model-00002-of-00010.safetensors").unlink()
    with pytest.raises(ConfigurationError, match=r"names model-00002-of-00010\.safetensors"):
        build_talker(folder, StageDeployment())


def test_a_file_that_was_cut_off_is_named(folder: Path) -> None:
    path = folder / "model-00003-of-00010.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ConfigurationError, match=r"model-00003-of-00010\.safetensors are damaged"):
        build_talker(folder, StageDeployment())


def test_a_missing_weight_of_the_decoder_is_named(folder: Path) -> None:
    name = "decoder.pre_transformer.layers.0.mlp.up_proj.weight"
    codec = folder / "speech_tokenizer"
    change_weights(codec, name, lambda weights: weights.__delitem__(name))
    with pytest.raises(ConfigurationError, match=r"pre_transformer.*up_proj\.weight is missing"):
        build_code2wav(codec, StageDeployment(input_limit=96))


def test_a_missing_weight_of_the_speaker_encoder_is_named(folder: Path) -> None:
    name = "speaker_encoder.asp.tdnn.conv.weight"
    change_weights(folder, name, lambda weights: weights.__delitem__(name))
    with pytest.raises(ConfigurationError, match=r"asp\.tdnn\.conv\.weight is missing"):
        build_reference(folder, StageDeployment())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "qwen3"}, "model_type is 'qwen3'"),
        ({"tokenizer_type": "qwen3_tts_tokenizer_25hz"}, "tokenizer_type is .*25hz"),
        ({"tts_model_type": "other"}, "tts_model_type"),
        ({"talker_config": {}}, "the key 'num_code_groups' is missing"),
    ],
    ids=str,
)
def test_another_models_configuration_is_named(
    folder: Path, values: dict[str, object], message: str
) -> None:
    change_config(folder / "config.json", **values)
    with pytest.raises(ConfigurationError, match=message):
        resolve(str(folder), folder)


def test_a_folder_without_a_codec_is_named(folder: Path) -> None:
    shutil.rmtree(folder / "speech_tokenizer")
    with pytest.raises(ConfigurationError, match=r"speech_tokenizer/config\.json cannot be read"):
        resolve(str(folder), folder)


def test_a_model_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="comes without weights"):
        resolve(None, tmp_path)
    with pytest.raises(ConfigurationError, match="somewhere/else/entirely"):
        resolve("somewhere/else/entirely", tmp_path)


def test_a_device_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="device is 'cuda:0', but"):
        build_talker(folder, StageDeployment(device="cuda:0"))
    with pytest.raises(ConfigurationError, match="torch sees 0 CUDA devices"):
        build_code2wav(folder / "speech_tokenizer", StageDeployment(device="cuda:0"))
