"""A checkpoint that is wrong or incomplete is named precisely."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import ConfigurationError, InvalidRequestError, SpeechParameters
from engine.deploy_config import StageDeployment, load_deploy_config
from engine.weight_files import INDEX
from pipelines.qwen2_5_omni.checkpoint import (
    SPEAKER_FILE,
    check_weights,
    load_denoiser,
    load_speakers,
    load_vocoder,
)
from pipelines.qwen2_5_omni.pipeline import FOLDER, PIPELINE
from pipelines.qwen2_5_omni.stages import build_talker

WEIGHT = "token2wav.code2wav_dit_model.proj_out.weight"


@pytest.fixture
def folder(checkpoint: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint, tmp_path / "copy"))


def shard_of(folder: Path, weight: str) -> Path:
    return folder / json.loads((folder / INDEX).read_text())["weight_map"][weight]


def change(folder: Path, remove: str, add: dict[str, torch.Tensor]) -> None:
    path = shard_of(folder, WEIGHT)
    tensors = load_file(path)
    del tensors[remove]
    save_file(tensors | add, path)


def test_a_good_checkpoint_is_taken_whole(checkpoint: Path, tmp_path: Path) -> None:
    for part in ("thinker.", "talker."):
        check_weights(checkpoint, part)
    models = PIPELINE.resolve(str(checkpoint), tmp_path)
    assert set(models) == {stage.name for stage in PIPELINE.stages}
    description = PIPELINE.describe(models)
    assert [voice.name for voice in description.voices] == ["Chelsie", "Ethan"]
    assert description.routes == ("speech", "chat", "chat_text")


def test_a_missing_and_an_unknown_weight_are_named(folder: Path) -> None:
    change(folder, WEIGHT, {f"{WEIGHT}_old": torch.zeros(1)})
    with pytest.raises(ConfigurationError) as refused:
        load_denoiser(folder)
    assert f"{WEIGHT} is missing" in str(refused.value)
    assert f"{WEIGHT}_old is not known" in str(refused.value)
    load_vocoder(folder)
    weight = "talker.codec_head.weight"
    path = shard_of(folder, weight)
    tensors = load_file(path)
    save_file({f"{n}_old" if n == weight else n: t for n, t in tensors.items()}, path)
    with pytest.raises(ConfigurationError, match=f"{weight} is missing; {weight}_old is not known"):
        build_talker(folder, StageDeployment())


def test_a_weight_of_another_shape_is_named_with_both(folder: Path) -> None:
    change(folder, WEIGHT, {WEIGHT: torch.zeros(3, 2)})
    with pytest.raises(ConfigurationError, match=r"weight has the shape \(3, 2\), not \(16"):
        load_denoiser(folder)


def test_a_missing_shard_is_named(folder: Path, tmp_path: Path) -> None:
    path = shard_of(folder, WEIGHT)
    path.unlink()
    with pytest.raises(ConfigurationError, match=path.name):
        PIPELINE.resolve(str(folder), tmp_path)


def test_speakers_that_are_not_there_or_do_not_fit_are_named(folder: Path, tmp_path: Path) -> None:
    path = folder / SPEAKER_FILE
    speakers = torch.load(path, weights_only=True)
    torch.save({"Nobody": speakers["Ethan"] | {"cond": torch.zeros(1, 3)}}, path)
    with pytest.raises(ConfigurationError, match="'Nobody' has a 'cond' of 3"):
        load_speakers(folder)
    torch.save({"Nobody": {"cond": torch.zeros(1, 12)}}, path)
    with pytest.raises(ConfigurationError, match="'Nobody' has no 'bos_token'"):
        load_speakers(folder)
    path.unlink()
    with pytest.raises(ConfigurationError, match="holds no spk_dict"):
        PIPELINE.resolve(str(folder), tmp_path)


def test_another_models_folder_and_none_are_refused(folder: Path, tmp_path: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "lark_talker"}))
    with pytest.raises(ConfigurationError, match="model_type is 'lark_talker'"):
        PIPELINE.resolve(str(folder), tmp_path)
    with pytest.raises(ConfigurationError, match="--model"):
        PIPELINE.resolve(None, tmp_path)


def test_parameters_that_cannot_be_served_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    models = PIPELINE.resolve(str(checkpoint), tmp_path)
    assert PIPELINE.check_models is not None
    PIPELINE.check_models(models, SpeechParameters(voice="Ethan"))
    with pytest.raises(InvalidRequestError, match="there are: Chelsie, Ethan"):
        PIPELINE.check_models(models, SpeechParameters(voice="alloy"))
    with pytest.raises(InvalidRequestError, match="speed"):
        PIPELINE.check(SpeechParameters(speed=2.0))
    with pytest.raises(InvalidRequestError, match="clones none"):
        PIPELINE.check_parameters(models, SpeechParameters(reference_audio=b"RIFF"))
    PIPELINE.check(SpeechParameters())


@pytest.mark.parametrize("name", ["deploy.yaml", "deploy-gpu.yaml", "deploy-two-gpus.yaml"])
def test_every_deployment_is_valid(name: str) -> None:
    config = load_deploy_config(FOLDER / name, [stage.name for stage in PIPELINE.stages])
    assert set(config.stages) == {stage.name for stage in PIPELINE.stages}
