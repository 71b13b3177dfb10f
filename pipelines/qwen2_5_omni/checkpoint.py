"""What lies in a checkpoint's folder: configuration, speakers, and Token2Wav's weights.

The layout is that of the published checkpoints: one folder with the weights of all stages in
safetensors shards under the prefixes `thinker.`, `talker.` and `token2wav.`, and the speakers in
`spk_dict.pt`. Thinker and Talker are loaded by vLLM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from transformers import (
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2_5OmniToken2WavModel,
)

from engine import ConfigurationError

TOKEN2WAV = "token2wav."
SPEAKER_FILE = "spk_dict.pt"
INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
MOST_NAMES = 4
"""Weights that an error names one by one."""


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
    if not path.is_file():
        raise ConfigurationError(f"{folder} holds no config.json; it is no checkpoint's folder.")
    kind = json.loads(path.read_text("utf-8")).get("model_type")
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


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint.

    Raises:
        ConfigurationError: There are none, or one that the index names is not there.
    """
    index = folder / INDEX_FILE
    if index.is_file():
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    else:
        names = [SINGLE_FILE]
    for name in names:
        if not (folder / name).is_file():
            raise ConfigurationError(
                f"{folder} holds no {name}; the checkpoint is incomplete, fetch it again."
            )
    return [folder / name for name in names]


def weights(folder: Path, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The checkpoint's weights under a prefix, without it."""
    for path in shards(folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                if name.startswith(prefix):
                    yield name.removeprefix(prefix), file.get_tensor(name)


def load_token2wav(folder: Path, device: str = "cpu") -> Qwen2_5OmniToken2WavModel:
    """The reference's modules of Token2Wav with the checkpoint's weights, in float32.

    Raises:
        ConfigurationError: Weights are missing, unknown or of another shape; they are named.
    """
    model = Qwen2_5OmniToken2WavModel(load_config(folder).token2wav_config)
    load_exactly(model, dict(weights(folder, TOKEN2WAV)), f"{folder}, {TOKEN2WAV}*")
    return model.float().eval().requires_grad_(False).to(device)


def check_weights(folder: Path) -> None:
    """Compares the names and shapes of all stages' weights with those that the model has.

    Quantised checkpoints are left to vLLM, which knows their layouts.

    Raises:
        ConfigurationError: Weights are missing, unknown or of another shape; they are named.
    """
    config = load_config(folder)
    if config.to_dict().get("quantization_config") is not None:
        return
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(config)
    found: dict[str, tuple[int, ...]] = {}
    for path in shards(folder):
        with safe_open(path, framework="pt") as file:
            found |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    _compare(model, found, str(folder))


def load_exactly(module: nn.Module, given: dict[str, torch.Tensor], source: str) -> None:
    """Loads a module's weights: all of the checkpoint's are used, and none is missing.

    Buffers that the module computes itself may be in the checkpoint and are left out.

    Raises:
        ConfigurationError: Weights are missing, unknown or of another shape; they are named.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in given.items()}
    used = _compare(module, shapes, source)
    module.load_state_dict({name: given[name] for name in used})


def _compare(module: nn.Module, found: dict[str, tuple[int, ...]], source: str) -> set[str]:
    """The names of the weights that a module takes, if they are all there and no others."""
    wanted = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    computed = {name for name, _ in module.named_buffers()} - set(wanted)
    given = {name: shape for name, shape in found.items() if name not in computed}
    faults = [
        _named("missing", sorted(set(wanted) - set(given))),
        _named("unknown", sorted(set(given) - set(wanted))),
        _named(
            "of another shape",
            [
                f"{name} ({given[name]} instead of {wanted[name]})"
                for name in sorted(set(given) & set(wanted))
                if given[name] != wanted[name]
            ],
        ),
    ]
    if any(faults):
        told = "; ".join(filter(None, faults))
        raise ConfigurationError(f"The weights {source} do not fit config.json: {told}.")
    return set(wanted)


def _named(fault: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{len(names)} {verb} {fault}: {', '.join(names[:MOST_NAMES])}{more}"
