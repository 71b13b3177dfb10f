"""The deployments for GPUs have room for the published checkpoints on cards with 80 GB."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.deploy_config import DeployConfig, StageDeployment, load_deploy_config
from engine.pipeline_config import PipelineConfig, StageKind
from pipelines.qwen.files import read_json
from pipelines.qwen2_5_omni.checkpoint import DENOISER, VOCODER
from tests.checkpoints import published_tts_weights
from tests.checkpoints.published_folders import Shapes
from tests.pipelines.published.checkpoints import (
    PUBLISHED,
    QWEN2_5_OMNI,
    QWEN3_OMNI,
    QWEN3_TTS,
    Published,
)
from tests.pipelines.published.conftest import Folders

CARD = 79 * 2**30
"""Bytes: what is left of the 80 GiB that are sold as 80 GB."""

DRIVER = 750_000_000
"""Bytes of a card for CUDA itself. This and the next two are estimates; no GPU was at hand."""

AUTOREGRESSIVE_WORK = 2_000_000_000
"""Bytes of an autoregressive stage for CUDA graphs and the values of a step."""

OTHER_WORK = 1_000_000_000
"""Bytes of another stage for the values of a step and what is kept of requests."""

VALUE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}

WEIGHTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    QWEN3_OMNI.name: {
        "thinker": ("thinker.",),
        "talker": ("talker.",),
        "code2wav": ("code2wav.",),
    },
    QWEN2_5_OMNI.name: {
        "thinker": ("thinker.",),
        "talker": ("talker.",),
        "denoiser": (DENOISER,),
        "vocoder": (VOCODER,),
    },
    QWEN3_TTS.name: {
        "reference": ("speaker_encoder.", "encoder."),
        "talker": ("talker.",),
        "code2wav": ("decoder.",),
    },
}
"""The weights of each stage."""

DEPLOYMENTS = ["deploy-gpu.yaml", "deploy-two-gpus.yaml"]

each = pytest.mark.parametrize("checkpoint", PUBLISHED, ids=str)


def deployment_of(pipeline: PipelineConfig, name: str) -> DeployConfig:
    path = pipeline.deploy.with_name(name)
    return load_deploy_config(path, [stage.name for stage in pipeline.stages])


def all_weights(checkpoint: Published, shapes: Shapes) -> Shapes:
    """Those beside `config.json` and, of Qwen3-TTS, those of the codec."""
    codec = published_tts_weights.codec() if checkpoint.pipeline is QWEN3_TTS else {}
    return {**shapes, **codec}


def weight_bytes(
    checkpoint: Published, shapes: Shapes, stage: str, deployment: StageDeployment
) -> int:
    prefixes = WEIGHTS[checkpoint.pipeline.name][stage]
    values = [
        math.prod(shape)
        for name, shape in all_weights(checkpoint, shapes).items()
        if name.startswith(prefixes)
    ]
    return sum(values) * VALUE_BYTES[deployment.dtype]


@each
@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_what_a_card_must_hold_fits(checkpoint: Published, name: str, folders: Folders) -> None:
    _, shapes = folders(checkpoint)
    config = deployment_of(checkpoint.pipeline, name)
    needed: dict[str, int] = defaultdict(lambda: DRIVER)
    for stage in checkpoint.pipeline.stages:
        deployment = config.stages[stage.name]
        size = weight_bytes(checkpoint, shapes, stage.name, deployment)
        if stage.kind is StageKind.AUTOREGRESSIVE:
            size += AUTOREGRESSIVE_WORK + deployment.key_value_cache_bytes
        else:
            size += OTHER_WORK
        needed[deployment.device] += deployment.replicas * size
    assert set(needed) == {f"cuda:{i}" for i in range(len(needed))}
    assert len(needed) == {"deploy-gpu.yaml": 1, "deploy-two-gpus.yaml": 2}[name]
    assert max(needed.values()) < CARD, needed


@each
@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_longest_request_fits_into_the_cache(
    checkpoint: Published, name: str, folders: Folders
) -> None:
    """vLLM refuses to start where it does not."""
    folder, _ = folders(checkpoint)
    config = deployment_of(checkpoint.pipeline, name)
    for stage, layers in backbones(read_json(folder / "config.json")).items():
        deployment = config.stages[stage]
        head = layers.get("head_dim") or layers["hidden_size"] // layers["num_attention_heads"]
        keys_and_values = 2 * layers["num_key_value_heads"] * head
        of_position = layers["num_hidden_layers"] * keys_and_values * 2
        assert deployment.max_steps * of_position < deployment.key_value_cache_bytes


def backbones(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The configurations of the layers of each language model."""
    parts = {"talker": config["talker_config"], "thinker": config.get("thinker_config")}
    return {name: part.get("text_config", part) for name, part in parts.items() if part}


@pytest.mark.parametrize("pipeline", [QWEN3_TTS, QWEN3_OMNI, QWEN2_5_OMNI], ids=lambda p: p.name)
def test_what_a_deployment_says_of_its_weights_is_true(
    pipeline: PipelineConfig, folders: Folders
) -> None:
    """Of the largest checkpoint that it is for, in 10⁹ bytes."""
    path: Path = pipeline.deploy.with_name("deploy-gpu.yaml")
    said = re.search(r"about (\d+) GB", path.read_text())
    assert said is not None
    config = deployment_of(pipeline, path.name)
    totals = []
    for checkpoint in PUBLISHED:
        if checkpoint.pipeline is pipeline:
            _, shapes = folders(checkpoint)
            sizes = [
                weight_bytes(checkpoint, shapes, name, deployment)
                for name, deployment in config.stages.items()
            ]
            totals.append(sum(sizes) / 1e9)
    assert int(said.group(1)) == round(max(totals)), totals
