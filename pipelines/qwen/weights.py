"""Weights of a checkpoint's folder: looked over before they are loaded, and named when wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import nn

from engine import ConfigurationError
from engine.weight_files import weight_files

NAMED = 5
"""How many wrong weights a message names."""

QUANTISED_KINDS = {"I8", "U8", "I16", "I32", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4"}
"""What the files call the types in which quantised weights are kept."""

CACHE_SCALES = (".q_scale", ".k_scale", ".v_scale")
"""Of attention, where its cache is to be quantised as well."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class FoundWeights:
    """Weights in a folder's files.

    Attributes:
        shapes: By name.
        quantised: Whether any is kept as something else than numbers of at least 16 bits.
    """

    shapes: Shapes
    quantised: bool


def found_weights(folder: Path, prefix: str = "") -> FoundWeights:
    """A folder's weights under a prefix, from the headers of the files that hold them.

    Raises:
        ConfigurationError: A file is missing or damaged.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    kinds: set[str] = set()
    for path in weight_files(folder, (prefix,)):
        header = _header(path)
        found = {n: v for n, v in header.items() if n.startswith(prefix) and n[:2] != "__"}
        shapes |= {name: tuple(value["shape"]) for name, value in found.items()}
        kinds |= {value["dtype"] for value in found.values()}
    return FoundWeights(shapes, not kinds.isdisjoint(QUANTISED_KINDS))


def _header(path: Path) -> dict[str, Any]:
    """What a file says of its weights.

    Raises:
        ConfigurationError: It is damaged.
    """
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header: dict[str, Any] = json.loads(file.read(length))
        end = max((v["data_offsets"][1] for k, v in header.items() if k[:2] != "__"), default=0)
        if path.stat().st_size != 8 + length + end:
            raise ValueError(f"it has {path.stat().st_size} bytes, not {8 + length + end}")
    except (OSError, ValueError, struct.error, KeyError, MemoryError) as error:
        raise ConfigurationError(
            f"The weights {path} are damaged: {error}. Fetch them again."
        ) from error
    return header


def require_weights(folder: Path, found: FoundWeights, wanted: Shapes) -> None:
    """Compares weights with those that a model has.

    A quantised layer has other tensors in the place of its weight, by its scheme; whether they are
    right is for vLLM's loader to say.

    Raises:
        ConfigurationError: One is missing, is not used, or has another shape; each is named.
    """
    has = found.shapes
    if found.quantised:
        has, wanted = _without_quantised(has, wanted)
    faults = []
    if missing := sorted(set(wanted) - set(has)):
        faults.append(f"{_named(missing)} missing")
    if unknown := sorted(set(has) - set(wanted)):
        faults.append(f"{_named(unknown)} not known to the model")
    for name in sorted(set(has) & set(wanted)):
        if has[name] != wanted[name]:
            faults.append(f"{name} has the shape {has[name]}, not {wanted[name]}")
    if faults:
        shown = "; ".join(faults[:NAMED])
        more = f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        raise ConfigurationError(
            f"The weights in {folder} do not fit its config.json: {shown}{more}."
        )


def _without_quantised(found: Shapes, wanted: Shapes) -> tuple[Shapes, Shapes]:
    """Both without the weights of quantised layers and what stands in their place."""
    layers = {name.removesuffix(".weight") for name in wanted if name.endswith(".weight")}
    added = {name for name in set(found) - set(wanted) if name.rpartition(".")[0] in layers}
    quantised = {f"{name.rpartition('.')[0]}.weight" for name in added}
    scales = {name for name in set(found) - set(wanted) if name.endswith(CACHE_SCALES)}
    dropped = added | quantised | scales
    return (
        {name: shape for name, shape in found.items() if name not in dropped},
        {name: shape for name, shape in wanted.items() if name not in quantised},
    )


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more} {'are' if len(names) > 1 else 'is'}"


def require_module(module: nn.Module, folder: Path, prefix: str = "") -> None:
    """Compares a folder's weights under a prefix with those that a module has.

    Buffers that the module computes itself may be in the checkpoint and are not looked at.

    Raises:
        ConfigurationError: A file is missing or damaged; a weight is missing, not used, or has
            another shape.
    """
    wanted = {prefix + name: tuple(value.shape) for name, value in module.state_dict().items()}
    computed = {prefix + name for name, _ in module.named_buffers()} - set(wanted)
    found = found_weights(folder, prefix)
    shapes = {name: shape for name, shape in found.shapes.items() if name not in computed}
    require_weights(folder, FoundWeights(shapes, found.quantised), wanted)


def load_module(module: nn.Module, folder: Path, prefix: str) -> None:
    """Loads every weight of a module, and every one under the prefix, from a folder.

    Raises:
        ConfigurationError: A file or weight is missing or wrong; it is named.
    """
    require_module(module, folder, prefix)
    wanted = module.state_dict()
    for path in weight_files(folder, (prefix,)):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                if name.startswith(prefix) and name.removeprefix(prefix) in wanted:
                    wanted[name.removeprefix(prefix)].copy_(file.get_tensor(name))
