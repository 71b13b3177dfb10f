"""JSON files of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine import ConfigurationError


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
