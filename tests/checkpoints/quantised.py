"""A checkpoint with part of its weights quantised, and the same weights as numbers again.

Written as the published quantised checkpoints are: the linear layers of some modules in the scheme
of a quantiser (GPTQ, AWQ, llm-compressor's compressed-tensors), a `quantization_config` in
`config.json`, everything else as it was. Rounding is plain, without calibration: what is tried is
how such weights are read.
"""

from __future__ import annotations

import json
import re
import shutil
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

GROUP = 32
"""Inputs that share a scale in the 4-bit schemes."""

CENTRE = 8
"""The 4-bit code of zero."""

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""How AWQ arranges the eight codes of a word."""

INDEX = "model.safetensors.index.json"


class Scheme(StrEnum):
    """How weights are quantised."""

    GPTQ = "gptq"
    AWQ = "awq"
    PACKED = "pack-quantized"
    INT8 = "int-quantized"


def quantise(
    source: Path, target: Path, scheme: Scheme, modules: str, *, nested: str | None = None
) -> Path:
    """Writes a quantised copy of a checkpoint, and beside it one with the same numbers unquantised.

    Args:
        source: The checkpoint.
        target: Where the copy goes.
        scheme: How.
        modules: Which linear layers: a regular expression for the beginnings of their names.
        nested: The part of `config.json` with the `quantization_config`; None: the file itself.

    Returns:
        The folder with the same weights as plain numbers.
    """
    numbers = target.with_name(target.name + "-numbers")
    for folder in (target, numbers):
        shutil.copytree(source, folder)
    chosen = re.compile(rf"(?:{modules}).*_proj\.weight$")
    places: dict[str, str] = {}
    left: list[str] = []
    for path in sorted(source.glob("*.safetensors")):
        quantised: dict[str, torch.Tensor] = {}
        plain: dict[str, torch.Tensor] = {}
        for name, values in load_file(path).items():
            if chosen.match(name):
                made, plain[name] = _quantised(values, scheme)
                module = name.removesuffix(".weight")
                quantised |= {f"{module}.{suffix}": tensor for suffix, tensor in made.items()}
            else:
                quantised[name] = plain[name] = values
                if name.endswith(".weight") and values.ndim == 2:
                    left.append(name.removesuffix(".weight"))
        places |= dict.fromkeys(quantised, path.name)
        save_file(quantised, target / path.name, metadata={"format": "pt"})
        save_file(plain, numbers / path.name, metadata={"format": "pt"})
    (target / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    config = json.loads((target / "config.json").read_text())
    place = config if nested is None else config[nested]
    place["quantization_config"] = _described(scheme, left)
    (target / "config.json").write_text(json.dumps(config, indent=2))
    return numbers


def _quantised(
    weight: torch.Tensor, scheme: Scheme
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """A layer's tensors by their last names, and the weight that they stand for."""
    rows, columns = weight.shape
    if scheme is Scheme.INT8:
        scales = weight.abs().amax(1, keepdim=True) / 127
        codes = (weight / scales).round().to(torch.int8)
        return {"weight": codes, "weight_scale": scales}, codes * scales
    grouped = weight.reshape(rows, columns // GROUP, GROUP)
    # Scales are kept in half precision, as published ones are.
    scales = (grouped.abs().amax(2) / 7).half()
    codes = (grouped / scales[..., None].float()).round().clamp(-CENTRE, 7).int() + CENTRE
    numbers = ((codes - CENTRE) * scales[..., None].float()).reshape(rows, columns)
    codes = codes.reshape(rows, columns)
    zeros = torch.full((columns // GROUP, rows), CENTRE, dtype=torch.int32)
    if scheme is Scheme.PACKED:
        made = {
            "weight_packed": _words(codes),
            "weight_scale": scales,
            "weight_shape": torch.tensor([rows, columns]),
        }
    elif scheme is Scheme.GPTQ:
        made = {
            "qweight": _words(codes).T.contiguous(),
            # The format keeps zeros less one.
            "qzeros": _words(zeros - 1),
            "scales": scales.T.contiguous(),
            "g_idx": torch.arange(columns, dtype=torch.int32) // GROUP,
        }
    else:
        made = {
            "qweight": _words(codes.T, AWQ_ORDER),
            "qzeros": _words(zeros, AWQ_ORDER),
            "scales": scales.T.contiguous(),
        }
    return made, numbers


def _words(codes: torch.Tensor, order: tuple[int, ...] = tuple(range(8))) -> torch.Tensor:
    """Eight 4-bit codes of a row in each 32-bit word, the first in the lowest bits."""
    eights = codes.reshape(len(codes), -1, 8)[:, :, list(order)].long()
    words = (eights << (4 * torch.arange(8))).sum(2)
    return torch.where(words >= 2**31, words - 2**32, words).int()


def _described(scheme: Scheme, left: list[str]) -> dict[str, Any]:
    if scheme is Scheme.GPTQ:
        # As published: which layers are quantised is seen from the files.
        return {
            "quant_method": "gptq",
            "bits": 4,
            "group_size": GROUP,
            "desc_act": False,
            "sym": True,
            "lm_head": False,
        }
    if scheme is Scheme.AWQ:
        return {
            "quant_method": "awq",
            "bits": 4,
            "group_size": GROUP,
            "zero_point": True,
            "version": "gemm",
            "modules_to_not_convert": left,
        }
    four = scheme is Scheme.PACKED
    weights = {
        "num_bits": 4 if four else 8,
        "type": "int",
        "symmetric": True,
        "strategy": "group" if four else "channel",
        "group_size": GROUP if four else None,
        "dynamic": False,
    }
    activations = {
        "num_bits": 8,
        "type": "int",
        "symmetric": True,
        "strategy": "token",
        "dynamic": True,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": scheme.value,
        "quantization_status": "compressed",
        "ignore": left,
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": weights,
                "input_activations": None if four else activations,
            }
        },
    }
