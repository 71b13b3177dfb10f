"""The topology of `qwen3_omni`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.deploy_config import StageDeployment
    from engine.stage import Replica

MOST_SOUNDS = 64
"""Sounds in one conversation."""


def build_thinker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with vLLM's own model of the Thinker."""
    from transformers import Qwen3OmniMoeConfig
    from vllm import ModelRegistry
    from vllm.tokenizers import get_tokenizer

    from engine.core import CoreSettings
    from engine.text_replica import TextReplica
    from pipelines.qwen3_omni.thinker_model import ARCHITECTURE, Qwen3OmniThinker, configure

    ModelRegistry.register_model(ARCHITECTURE, Qwen3OmniThinker)
    config = Qwen3OmniMoeConfig.from_pretrained(folder)
    settings = CoreSettings.of(
        folder,
        deployment,
        conditioned=False,
        hidden_layer=config.talker_config.accept_hidden_layer,
        media={"audio": MOST_SOUNDS},
        configure=configure,
    )
    return TextReplica(settings, get_tokenizer(str(folder)))


def build_talker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with the Talker and its code predictor."""
    from vllm import ModelRegistry

    from engine.autoregressive import AutoregressiveReplica
    from engine.core import CoreSettings
    from pipelines.qwen3_omni.sampling import sampling_of
    from pipelines.qwen3_omni.talker import ARCHITECTURE, Qwen3OmniTalker, configure

    ModelRegistry.register_model(ARCHITECTURE, Qwen3OmniTalker)
    settings = CoreSettings.of(folder, deployment, conditioned=True, configure=configure)
    return AutoregressiveReplica(settings, sampling_of)
