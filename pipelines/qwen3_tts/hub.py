"""Checkpoints of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from engine import ConfigurationError

PATTERNS = ("*.json", "*.safetensors", "*.txt", "speech_tokenizer/*")


def fetch(name: str, cache: Path) -> Path:
    """The folder of a checkpoint of the hub, fetched once.

    Args:
        name: `owner/name`.
        cache: The folder for fetched models.

    Raises:
        ConfigurationError: There is no such folder here, and it cannot be fetched.
    """
    if name.count("/") != 1 or name.startswith(("/", ".")):
        raise ConfigurationError(
            f"The model {name!r} is neither a folder here nor a name of the hub, `owner/name`."
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, cache_dir=cache / "hub", allow_patterns=list(PATTERNS)))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise ConfigurationError(
            f"The model {name!r} is no folder here and cannot be fetched from the hub: {error}"
        ) from error
