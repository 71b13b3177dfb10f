"""The files in which a checkpoint keeps the weights that one of its models needs."""

from __future__ import annotations

import json
from pathlib import Path

from engine.errors import ConfigurationError

INDEX = "model.safetensors.index.json"
"""Says which file holds which weight, where there are several."""


def weight_files(folder: Path, prefixes: tuple[str, ...] = ("",)) -> list[Path]:
    """The files of a folder with weights whose names begin with one of the prefixes.

    Without an index that is every file; with one, no other file needs to be there.

    Raises:
        ConfigurationError: There are none, one that the index names is not there, or the index
            cannot be read.
    """
    index = folder / INDEX
    if not index.is_file():
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise ConfigurationError(f"The checkpoint {folder} holds no weights (*.safetensors).")
        return files
    try:
        places: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted({file for name, file in places.items() if name.startswith(prefixes)})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"The checkpoint's {index} is damaged: {error!r}. Fetch it again."
        ) from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ConfigurationError(
            f"The checkpoint {folder} is incomplete: {INDEX} names {', '.join(missing)}, "
            "which is not there. Fetch it again."
        )
    return [folder / name for name in names]
