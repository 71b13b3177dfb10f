"""Parts of the configuration as transformers reads it, with their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Part = TypeVar("Part")


def part(value: object, kind: type[Part]) -> Part:
    """A part of a configuration, which transformers declares as anything.

    Raises:
        TypeError: It is not of that kind.
    """
    if not isinstance(value, kind):
        raise TypeError(f"The configuration has a {type(value).__name__}, not {kind.__name__}.")
    return value


def rope_theta(rotary: object) -> float:
    """The base of rotary embeddings that a part asks for; 10,000 if it does not say."""
    theta = rotary.get("rope_theta") if isinstance(rotary, Mapping) else None
    return 10_000.0 if theta is None else float(theta)
