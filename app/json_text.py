"""JSON as text inside of a client's JSON: the arguments of a function."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import from_json


def _require_object(value: str) -> str:
    try:
        known = isinstance(from_json(value), dict)
    except ValueError as error:
        raise ValueError(f"it should be a JSON object as text ({error}).") from None
    if not known:
        raise ValueError("it should be a JSON object as text.")
    return value


JsonObjectText = Annotated[str, AfterValidator(_require_object)]
"""A text that is a JSON object."""
