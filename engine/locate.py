"""From what a person calls a model to the folder that it lies in."""

from __future__ import annotations

import re
from pathlib import Path

from engine.catalogue import Catalogue, ModelUnavailableError

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
"""`owner/name`, perhaps with a branch, tag or commit behind an `@`."""


def locate(catalogue: Catalogue, model: str) -> Path:
    """The folder of a model.

    Args:
        catalogue: The models that are known by name.
        model: A folder; a name of the catalogue; or `owner/name` of a model on the Hugging Face
            hub, `owner/name@revision` for one version of it. A model of the hub that is not in the
            hub's own cache is downloaded, since a person asked for it by that name.

    Raises:
        ModelUnavailableError: It is none of these, or cannot be got.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if _HUB_ID.fullmatch(model):
        return _from_hub(model)
    return catalogue.resolve(model)


def _from_hub(model: str) -> Path:
    # Imported here, since it is only needed by those who name such a model, and slow to import.
    import huggingface_hub

    name, _, revision = model.partition("@")
    try:
        return Path(huggingface_hub.snapshot_download(name, revision=revision or None))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelUnavailableError(
            f"{model!r} is no folder here, and the hub did not give a model of this name: {reason}"
        ) from error
