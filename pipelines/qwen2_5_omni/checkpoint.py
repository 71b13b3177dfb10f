"""What lies in a checkpoint's folder: configuration, speakers, and the parts of Token2Wav.

The layout is that of the published checkpoints: one folder with the weights of all stages in
safetensors shards under the prefixes `thinker.`, `talker.` and `token2wav.`, and the speakers in
`spk_dict.pt`. Thinker and Talker are loaded by vLLM.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5OmniToken2WavBigVGANModel,
    Qwen2_5OmniToken2WavDiTModel,
)

from engine import ConfigurationError
from pipelines.qwen.files import read_json
from pipelines.qwen.weights import FoundWeights, found_weights, load_module, require_weights

DENOISER = "token2wav.code2wav_dit_model."
VOCODER = "token2wav.code2wav_bigvgan_model."
SPEAKER_FILE = "spk_dict.pt"


@dataclass(frozen=True, slots=True)
class Speaker:
    """One voice of a checkpoint.

    Attributes:
        begin_token: The text token that opens what the Talker reads.
        conditioning: The speaker's embedding, float32, shape [speaker width].
        reference_mel: A mel spectrogram of the voice, float32, shape [frames, mel].
    """

    begin_token: int
    conditioning: torch.Tensor
    reference_mel: torch.Tensor


def load_config(folder: Path) -> Any:
    """The configuration of all stages, a `Qwen2_5OmniConfig` (upstream leaves its types open).

    Raises:
        ConfigurationError: The folder holds another model, or one that cannot speak.
    """
    path = folder / "config.json"
    kind = read_json(path).get("model_type")
    if kind != Qwen2_5OmniConfig.model_type:
        raise ConfigurationError(
            f"{path}: model_type is {kind!r}; this pipeline takes {Qwen2_5OmniConfig.model_type!r}."
        )
    config = Qwen2_5OmniConfig.from_pretrained(folder)
    if not config.enable_audio_output:
        raise ConfigurationError(
            f"{path}: enable_audio_output is false; this checkpoint has no Talker and cannot speak."
        )
    return config


def load_speakers(folder: Path) -> dict[str, Speaker]:
    """The voices by name, the default first.

    Raises:
        ConfigurationError: The file is not there, or an entry in it is not as it must be.
    """
    path = folder / SPEAKER_FILE
    if not path.is_file():
        raise ConfigurationError(f"{folder} holds no {SPEAKER_FILE}, the checkpoint's speakers.")
    entries = torch.load(path, map_location="cpu", weights_only=True)
    dit = load_config(folder).token2wav_config.dit_config
    return {name: _speaker(path, name, entry, dit) for name, entry in entries.items()}


def _speaker(path: Path, name: str, entry: dict[str, Any], dit: Any) -> Speaker:
    for key in ("bos_token", "cond", "ref_mel"):
        if key not in entry:
            raise ConfigurationError(f"{path}: speaker {name!r} has no {key!r}.")
    conditioning = entry["cond"].float().reshape(-1)
    reference = entry["ref_mel"].float()
    reference = reference.reshape(-1, reference.shape[-1])
    if len(conditioning) != dit.enc_emb_dim or reference.shape[-1] != dit.mel_dim:
        raise ConfigurationError(
            f"{path}: speaker {name!r} has a 'cond' of {len(conditioning)} and a 'ref_mel' of "
            f"{reference.shape[-1]} columns; config.json asks for {dit.enc_emb_dim} and "
            f"{dit.mel_dim}."
        )
    return Speaker(int(entry["bos_token"]), conditioning, reference)


def load_denoiser(folder: Path, device: str = "cpu") -> Qwen2_5OmniToken2WavDiTModel:
    """The reference's flow-matching transformer with the checkpoint's weights, in float32.

    Raises:
        ConfigurationError: Weights are missing, unknown or of another shape; they are named.
    """
    model = Qwen2_5OmniToken2WavDiTModel(load_config(folder).token2wav_config.dit_config)
    load_module(model, folder, DENOISER)
    return model.float().eval().requires_grad_(False).to(device)


def load_vocoder(folder: Path, device: str = "cpu") -> Qwen2_5OmniToken2WavBigVGANModel:
    """The reference's BigVGAN with the checkpoint's weights, in float32.

    Raises:
        ConfigurationError: Weights are missing, unknown or of another shape; they are named.
    """
    model = Qwen2_5OmniToken2WavBigVGANModel(load_config(folder).token2wav_config.bigvgan_config)
    load_module(model, folder, VOCODER)
    return model.float().eval().requires_grad_(False).to(device)


def check_weights(folder: Path, part: str = "") -> FoundWeights:
    """Compares the weights under a prefix with those that the model has, and gives what there is.

    Raises:
        ConfigurationError: Weights are missing, unknown or of another shape; they are named.
    """
    found = found_weights(folder, part)
    require_weights(folder, found, {n: s for n, s in _wanted(folder).items() if n.startswith(part)})
    return found


@functools.cache
def _wanted(folder: Path) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        model: nn.Module = Qwen2_5OmniForConditionalGeneration(load_config(folder))
    return {name: tuple(values.shape) for name, values in model.state_dict().items()}
