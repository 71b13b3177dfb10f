"""Tool calls as JSON: the grammar that guides a Thinker, and the reading of what it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xgrammar

from engine.errors import InvalidRequestError
from engine.request import Chat, Tool

CALL_BEGINS = '{"'
"""What a call begins with."""


_ANY_OBJECT = {"type": "object"}


@dataclass(frozen=True, slots=True)
class CallRule:
    """Whether an answer is a call.

    Attributes:
        required: Whether it must be one; else the Thinker decides.
        grammar: What a call obeys, in xgrammar's EBNF.
    """

    required: bool
    grammar: str


def call_rule(chat: Chat) -> CallRule | None:
    """Whether an answer is a call, and of what; None: it is words.

    A call is `{"name": ..., "arguments": {...}}`. `tool_choice` decides: with `required` the answer
    is a call of any of the tools, with a name of that one; with `auto` it may be one. What answers
    a tool's result is never a call then, or it might go on for ever.

    Raises:
        InvalidRequestError: A tool is required but none (or not the named one) was given; or the
            parameters of a required tool are no JSON schema that can guide.
    """
    answers_tool = bool(chat.messages) and chat.messages[-1].role == "tool"
    if chat.tool_choice == "none":
        return None
    if chat.tool_choice == "auto" and (answers_tool or not chat.tools):
        return None
    required = chat.tool_choice != "auto"
    grammars = [_call(tool, required) for tool in _allowed(chat)]
    calls = grammars[0] if len(grammars) == 1 else xgrammar.Grammar.union(*grammars)
    return CallRule(required, str(calls))


def _allowed(chat: Chat) -> Sequence[Tool]:
    if chat.tool_choice in ("auto", "required"):
        allowed = chat.tools
    else:
        allowed = tuple(tool for tool in chat.tools if tool.name == chat.tool_choice)
    if not allowed:
        known = ", ".join(tool.name for tool in chat.tools) or "none"
        raise InvalidRequestError(
            "tool_choice", f"tool_choice is {chat.tool_choice!r}, but the tools are: {known}."
        )
    return allowed


def _call(tool: Tool, required: bool) -> xgrammar.Grammar:
    try:
        return _grammar(tool.name, tool.parameters or _ANY_OBJECT)
    except RuntimeError as error:
        if not required:
            # Who did not ask for a call need not be refused for a schema with rare features.
            return _grammar(tool.name, _ANY_OBJECT)
        reason = str(error).strip().rpartition(": ")[2]
        raise InvalidRequestError(
            "tools", f"The parameters of {tool.name!r} are no schema that can guide: {reason}."
        ) from None


def _grammar(name: str, parameters: Mapping[str, Any]) -> xgrammar.Grammar:
    schema = {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": dict(parameters)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    # Without free white space, which small models like to go on writing.
    return xgrammar.Grammar.from_json_schema(json.dumps(schema), any_whitespace=False)


def parse_tool_call(text: str) -> tuple[str, str]:
    """Reads a call that obeys the grammar.

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
