"""What the embedded Thinker reads."""

from __future__ import annotations

import pytest

from engine import Chat, ChatMessage, Tool
from pipelines.conversation.thinker import EXAMPLES, SYSTEM_PROMPT, rendered_messages

HELLO = ChatMessage("user", "Hello")
WEATHER = Tool("get_weather", "Tells the weather.", {"type": "object"})


def test_a_conversation_without_instructions_begins_with_examples() -> None:
    opening, *rest = rendered_messages(Chat((HELLO,)))
    assert opening == {"role": "system", "content": SYSTEM_PROMPT}
    assert len(rest) == len(EXAMPLES) + 1
    assert rest[-1] == {"role": "user", "content": "Hello"}


def test_instructions_replace_all_of_it() -> None:
    rules = ChatMessage("system", "Rhyme.")
    expected = [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "Hello"}]
    assert rendered_messages(Chat((rules, HELLO))) == expected


def test_functions_are_described_without_examples() -> None:
    opening, *rest = rendered_messages(Chat((HELLO,), (WEATHER,)))
    assert "get_weather" in opening["content"]
    assert rest == [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize("messages", [(HELLO,), (ChatMessage("system", "Rhyme."), HELLO)])
def test_functions_that_may_not_be_called_are_not_described(
    messages: tuple[ChatMessage, ...],
) -> None:
    with_tools, without = Chat(messages, (WEATHER,), "none"), Chat(messages)
    assert rendered_messages(with_tools) == rendered_messages(without)


def test_the_beginning_stays_the_same_from_turn_to_turn() -> None:
    """Only then need nothing be read twice."""
    first = rendered_messages(Chat((HELLO,)))
    answer = ChatMessage("assistant", "Hi!")
    second = rendered_messages(Chat((HELLO, answer, ChatMessage("user", "More."))))
    assert second[: len(first)] == first
