"""Parts of the configuration as transformers reads it, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

Part = TypeVar("Part")

SECTIONS = (24, 20, 20)
"""How the reference shares the frequencies out where a checkpoint does not say it."""


def part(value: object, kind: type[Part]) -> Part:
    """A part of a configuration, which transformers declares as anything.

    Raises:
        TypeError: It is not of that kind.
    """
    if not isinstance(value, kind):
        raise TypeError(f"The configuration has a {type(value).__name__}, not {kind.__name__}.")
    return value


def rotary_rows(rotary: object) -> dict[str, Any]:
    """A rotary embedding with a row each for time, height and width, as the reference has it.

    Args:
        rotary: What the part's configuration says of it.
    """
    known = rotary if isinstance(rotary, Mapping) else {}
    return {
        "rope_type": "default",
        "rope_theta": rope_theta(rotary),
        "mrope_section": list(known.get("mrope_section") or SECTIONS),
        "mrope_interleaved": True,
    }


def rope_theta(rotary: object) -> float:
    """The base of rotary embeddings that a part asks for; 10,000 if it does not say."""
    theta = rotary.get("rope_theta") if isinstance(rotary, Mapping) else None
    return 10_000.0 if theta is None else float(theta)
