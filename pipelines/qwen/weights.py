"""Weights of a checkpoint's folder: looked over before they are loaded, and named when wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open
from torch import nn

from engine import ConfigurationError
from pipelines.qwen.files import read_json

INDEX = "model.safetensors.index.json"
NAMED = 5
"""How many wrong weights a message names."""

Shapes = Mapping[str, tuple[int, ...]]


def weight_files(folder: Path) -> list[Path]:
    """The files with a folder's weights.

    Raises:
        ConfigurationError: There are none, or one that the index names is not there.
    """
    index = folder / INDEX
    if index.is_file():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise ConfigurationError(
                f"The checkpoint {folder} is incomplete: {INDEX} names {', '.join(missing)}, "
                "which is not there. Fetch it again."
            )
        return [folder / name for name in names]
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ConfigurationError(f"The checkpoint {folder} holds no weights (*.safetensors).")
    return files


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a folder's weights, from the headers of its files.

    Raises:
        ConfigurationError: A file is missing or damaged.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for path in weight_files(folder):
        try:
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(length))
            end = max((v["data_offsets"][1] for k, v in header.items() if k[:2] != "__"), default=0)
            if path.stat().st_size != 8 + length + end:
                raise ValueError(f"it has {path.stat().st_size} bytes, not {8 + length + end}")
        except (OSError, ValueError, struct.error, KeyError, MemoryError) as error:
            raise ConfigurationError(
                f"The weights {path} are damaged: {error}. Fetch them again."
            ) from error
        shapes |= {name: tuple(v["shape"]) for name, v in header.items() if name[:2] != "__"}
    return shapes


def require_weights(folder: Path, found: Shapes, wanted: Shapes) -> None:
    """Compares weights with those that a model has.

    Raises:
        ConfigurationError: One is missing, is not used, or has another shape; each is named.
    """
    faults = []
    if missing := sorted(set(wanted) - set(found)):
        faults.append(f"{_named(missing)} missing")
    if unknown := sorted(set(found) - set(wanted)):
        faults.append(f"{_named(unknown)} not known to the model")
    for name in sorted(set(found) & set(wanted)):
        if found[name] != wanted[name]:
            faults.append(f"{name} has the shape {found[name]}, not {wanted[name]}")
    if faults:
        shown = "; ".join(faults[:NAMED])
        more = f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        raise ConfigurationError(
            f"The weights in {folder} do not fit its config.json: {shown}{more}."
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
    found = {
        name: shape
        for name, shape in weight_shapes(folder).items()
        if name.startswith(prefix) and name not in computed
    }
    require_weights(folder, found, wanted)


def load_module(module: nn.Module, folder: Path, prefix: str) -> None:
    """Loads every weight of a module, and every one under the prefix, from a folder.

    Raises:
        ConfigurationError: A file or weight is missing or wrong; it is named.
    """
    require_module(module, folder, prefix)
    wanted = module.state_dict()
    for path in weight_files(folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                if name.startswith(prefix) and name.removeprefix(prefix) in wanted:
                    wanted[name.removeprefix(prefix)].copy_(file.get_tensor(name))
