"""Why a client's event cannot be followed, in OpenAI's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_KINDS = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class EventError(Exception):
    """A client's event is refused; the session goes on.

    Attributes:
        message: One plain sentence for people.
        code: A stable word for programs.
        param: The field at fault, if one is.
        event_id: The client's own name of the event, if it gave one.
        kind: OpenAI's `type` of the error.
    """

    def __init__(
        self,
        message: str,
        code: str,
        param: str | None = None,
        *,
        event_id: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        """Collects what the `error` event needs."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param
        self.event_id = event_id
        self.kind = kind

    def as_dict(self) -> dict[str, Any]:
        """The value of the event's `error`."""
        return {
            "type": self.kind,
            "code": self.code,
            "message": self.message,
            "param": self.param,
            "event_id": self.event_id,
        }


def explain(failure: ValidationError, data: Any, prefix: str = "") -> EventError:
    """The first mistake of a client's JSON object, with the path of the field.

    Args:
        failure: What pydantic found.
        data: The object that was checked.
        prefix: What comes before the path, such as `session.`.
    """
    mistake = failure.errors(include_url=False)[0]
    location = _keys_only(mistake["loc"], data)
    param = prefix + _path(location) if location else prefix.rstrip(".") or None
    kind = mistake["type"]
    if kind == "extra_forbidden":
        return EventError(f"Unknown parameter: '{param}'.", "unknown_parameter", param)
    if kind in ("missing", "union_tag_not_found"):
        if kind == "union_tag_not_found":
            param = f"{param}.type" if param else "type"
        message = f"Missing required parameter: '{param}'."
        return EventError(message, "missing_required_parameter", param)
    if kind in _KINDS:
        message = (
            f"Invalid type for '{param}': expected {_KINDS[kind]}, but got "
            f"{_named(mistake['input'])} instead."
        )
        return EventError(message, "invalid_type", param)
    message = _sentence(param, mistake)
    if kind == "union_tag_invalid":
        param = f"{param}.type" if param else "type"
    return EventError(message, "invalid_value", param)


def _sentence(param: str | None, mistake: ErrorDetails) -> str:
    if mistake["type"] == "value_error":
        return f"Invalid value for '{param}': {mistake['ctx']['error']}"
    shown = repr(mistake["input"])
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    if mistake["type"] == "union_tag_invalid":
        return (
            f"Invalid value for '{param}.type'. Supported values are: "
            f"{mistake['ctx']['expected_tags']}."
        )
    if mistake["type"] == "literal_error":
        return f"Invalid value: {shown}. Supported values are: {mistake['ctx']['expected']}."
    _, _, expected = mistake["msg"].partition(" should ")
    return f"Invalid value for '{param}': {shown}. It should {expected or 'be different'}."


def _keys_only(location: Sequence[int | str], data: Any) -> list[int | str]:
    """Leaves out what names a variant of a union and no key of the client's object."""
    keys: list[int | str] = []
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(data, dict) and isinstance(part, str):
            if part in data:
                data = data[part]
            elif not last:
                continue
            keys.append(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
            keys.append(part)
    return keys


def _path(location: Sequence[int | str]) -> str:
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _named(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"
