"""The rule that an answer with functions obeys."""

from __future__ import annotations

import pytest

from engine import Chat, ChatMessage, InvalidRequestError, Tool
from engine.tool_calls import call_rule, parse_tool_call

WEATHER = Tool("get_weather", "Tells the weather.", {"type": "object"})
ODD = Tool("odd", "Has a schema that cannot guide.", {"type": "object", "$ref": "#/nowhere"})
ASKED = (ChatMessage("user", "Hello"),)
ANSWERED = (*ASKED, ChatMessage("tool", "sunny", tool_call_id="call_1"))


@pytest.mark.parametrize(
    ("chat", "required"),
    [
        (Chat(ASKED, (WEATHER,), "none"), None),
        (Chat(ASKED, (), "auto"), None),
        (Chat(ANSWERED, (WEATHER,), "auto"), None),
        (Chat(ASKED, (WEATHER,), "auto"), False),
        (Chat(ASKED, (WEATHER,), "required"), True),
        (Chat(ANSWERED, (WEATHER,), "get_weather"), True),
        (Chat(ASKED, (ODD,), "auto"), False),
    ],
)
def test_who_decides(chat: Chat, required: bool | None) -> None:
    rule = call_rule(chat)
    assert (None if rule is None else rule.required) is required


@pytest.mark.parametrize(
    ("chat", "param", "message"),
    [
        (Chat(ASKED, (), "required"), "tool_choice", "the tools are: none"),
        (Chat(ASKED, (WEATHER,), "other"), "tool_choice", "the tools are: get_weather"),
        (Chat(ASKED, (ODD,), "required"), "tools", "'odd' are no schema that can guide"),
    ],
)
def test_what_cannot_be_called_is_refused(chat: Chat, param: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        call_rule(chat)
    assert caught.value.parameter == param


def test_calls_are_read() -> None:
    text = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
    assert parse_tool_call(text) == ("get_weather", '{"city": "Rome"}')
    with pytest.raises(ValueError, match="no complete tool call"):
        parse_tool_call(text[:20])
