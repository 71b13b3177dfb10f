"""The weights that a checkpoint's configuration asks for, by the checkpoint's names.

The reference's own modules, made without memory for their values, say what there must be.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import torch
from torch import nn
from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

from pipelines.qwen.weights import FoundWeights, found_weights, require_weights

Shapes = dict[str, tuple[int, ...]]

FUSED = re.compile(r"(.*\.experts)\.(gate_up_proj|down_proj)$")
"""Experts that the reference keeps in one tensor, and checkpoints one by one."""


def check_weights(folder: Path, part: str) -> FoundWeights:
    """Compares a folder's weights under a prefix with its configuration, and gives what there is.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    found = found_weights(folder, part)
    wanted = {n: s for n, s in _wanted(folder).items() if n.startswith(part)}
    require_weights(folder, found, wanted)
    return found


@functools.cache
def _wanted(folder: Path) -> Shapes:
    config = Qwen3OmniMoeConfig.from_pretrained(folder)
    with torch.device("meta"):
        model: nn.Module = Qwen3OmniMoeForConditionalGeneration(config)
    shapes: Shapes = {}
    for name, values in model.state_dict().items():
        shapes |= _unfused(name, tuple(values.shape))
    return shapes


def _unfused(name: str, shape: tuple[int, ...]) -> Shapes:
    fused = FUSED.match(name)
    if fused is None:
        return {name: shape}
    experts, projection = fused.groups()
    count, rows, columns = shape
    if projection == "down_proj":
        return {f"{experts}.{i}.down_proj.weight": (rows, columns) for i in range(count)}
    return {
        f"{experts}.{i}.{half}.weight": (rows // 2, columns)
        for i in range(count)
        for half in ("gate_proj", "up_proj")
    }
