"""Tool calls as JSON: the schema that guides a Thinker, and the reading of what it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import InvalidRequestError
from engine.request import Chat, Tool


def tool_call_schema(chat: Chat) -> Mapping[str, Any] | None:
    """The schema of the call that the answer must be; None: the answer is free text.

    A call is `{"name": ..., "arguments": {...}}`. `tool_choice` decides: `required` allows any of
    the tools, a name that one tool.

    Raises:
        InvalidRequestError: A tool is required but none (or not the named one) was given.
    """
    if chat.tool_choice in ("auto", "none"):
        return None
    allowed = chat.tools
    if chat.tool_choice != "required":
        allowed = tuple(tool for tool in chat.tools if tool.name == chat.tool_choice)
    if not allowed:
        known = ", ".join(tool.name for tool in chat.tools) or "none"
        raise InvalidRequestError(
            "tool_choice", f"tool_choice is {chat.tool_choice!r}, but the tools are: {known}."
        )
    return _one_of(allowed)


def _one_of(tools: Sequence[Tool]) -> Mapping[str, Any]:
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": dict(tool.parameters)},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def parse_tool_call(text: str) -> tuple[str, str]:
    """Reads a call that obeys the schema.

    Returns:
        The function's name and its arguments as a JSON text.

    Raises:
        ValueError: The text is cut off or no call; the token limit was too small for it.
    """
    try:
        call = json.loads(text)
        return str(call["name"]), json.dumps(call["arguments"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"The answer is no complete tool call: {text[:200]!r}.") from error
