"""The folder of a checkpoint and the JSON files in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine import ConfigurationError, TextReport
from engine.catalogue import Catalogue
from engine.locate import locate


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of a checkpoint.

    Raises:
        ConfigurationError: It is not there or is no JSON object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The checkpoint's {path} cannot be read: {error}.") from error
    if not isinstance(values, dict):
        raise ConfigurationError(f"The checkpoint's {path} is no JSON object.")
    return values


def checkpoint_folder(pipeline: str, model: str | None, cache: Path) -> Path:
    """The folder of what the operator named: a folder here, or a model of the hub.

    Raises:
        ConfigurationError: Nothing was named, or it is not to be found.
    """
    if model is None:
        raise ConfigurationError(
            f"The pipeline {pipeline} comes without weights: name a folder with a checkpoint, or "
            "one of the hub, with --model."
        )
    return locate(Catalogue.installed(cache), model)


def inspect_text(text: str) -> TextReport:
    """Whether there is anything to say; the models read every character themselves."""
    return TextReport(any(character.isalnum() for character in text))


def model_id(folder: Path) -> str:
    """What clients may call a checkpoint.

    That is its folder's name; of one in the hub's cache, where the folder is named after a commit,
    it is its name on the hub, such as `Qwen/Qwen2.5-Omni-7B`.
    """
    repository = folder.parent.parent.name
    if folder.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.removeprefix("models--").replace("--", "/")
    return folder.name
