"""How the stages of `qwen2_5_omni` are built.

Importing this module is cheap; torch and vLLM are imported when a stage is built.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.deploy_config import StageDeployment
    from engine.stage import Replica

MOST_SOUNDS = 64
MOST_PICTURES = 64
"""Sounds and pictures in one conversation."""


def build_thinker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with vLLM's own model of the Thinker.

    Raises:
        ConfigurationError: A weight of the checkpoint is missing, unknown or of another shape.
    """
    from vllm.tokenizers import get_tokenizer

    from engine.core import CoreSettings
    from engine.hidden_states import FINAL_LAYER
    from engine.text_replica import TextReplica
    from pipelines.qwen2_5_omni.checkpoint import check_weights
    from pipelines.qwen2_5_omni.thinker import configure

    check_weights(folder, "thinker.")
    settings = CoreSettings.of(
        folder,
        deployment,
        conditioned=False,
        hidden_layer=FINAL_LAYER,
        media={"audio": MOST_SOUNDS, "image": MOST_PICTURES},
        weights=("thinker.",),
        configure=configure,
    )
    return TextReplica(settings, get_tokenizer(str(folder)))


def build_talker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with the Talker.

    Raises:
        ConfigurationError: A weight of the checkpoint is missing, unknown or of another shape.
    """
    from vllm import ModelRegistry

    from engine.autoregressive import AutoregressiveReplica
    from engine.core import CoreSettings
    from pipelines.qwen2_5_omni.checkpoint import check_weights, load_config
    from pipelines.qwen2_5_omni.sampling import sampling_of
    from pipelines.qwen2_5_omni.talker import ARCHITECTURE, WEIGHTS, Qwen25OmniTalker, configure
    from pipelines.qwen2_5_omni.talker_tokens import mark_token_ids

    found = check_weights(folder, "talker.")
    ModelRegistry.register_model(ARCHITECTURE, Qwen25OmniTalker)
    pad = load_config(folder).talker_config.tts_codec_pad_token_id
    settings = CoreSettings.of(
        folder,
        deployment,
        conditioned=True,
        weights=WEIGHTS,
        configure=partial(
            configure, mark_token_ids=mark_token_ids(folder), quantised=found.quantised
        ),
    )
    return AutoregressiveReplica(settings, sampling_of(pad))


def build_denoiser(folder: Path, deployment: StageDeployment) -> Replica:
    """One batched flow-matching transformer."""
    from engine.device import require_torch_device
    from engine.diffusion import DiffusionReplica
    from pipelines.qwen2_5_omni.checkpoint import load_denoiser, load_speakers
    from pipelines.qwen2_5_omni.denoiser import Denoiser
    from pipelines.qwen2_5_omni.flow import FlowSettings
    from pipelines.qwen2_5_omni.token2mel import Token2Mel

    require_torch_device(deployment.device)
    diffusion = deployment.diffusion
    settings = FlowSettings() if diffusion.steps is None else FlowSettings(diffusion.steps + 1)
    denoiser = Denoiser(load_denoiser(folder, deployment.device), settings)
    compares = diffusion.cache is not None
    module = Token2Mel(denoiser, load_speakers(folder), settings, compares=compares)
    return DiffusionReplica.of(module, deployment)


def build_vocoder(folder: Path, deployment: StageDeployment) -> Replica:
    """One batched BigVGAN."""
    from engine.device import require_torch_device
    from engine.generation import GenerationReplica
    from pipelines.qwen2_5_omni.checkpoint import load_vocoder
    from pipelines.qwen2_5_omni.vocoder import Vocoder

    require_torch_device(deployment.device)
    return GenerationReplica.of(Vocoder(load_vocoder(folder, deployment.device)), deployment)
