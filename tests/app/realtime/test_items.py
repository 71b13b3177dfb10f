"""The conversation's items, their order, and how much of an answer was heard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audio.wire_formats import TICKS_PER_SECOND
from app.realtime.conversation import Conversation
from app.realtime.failure import EventError
from app.realtime.items import (
    FunctionCall,
    FunctionOutput,
    Message,
    Part,
    PartKind,
    as_messages,
    newest,
)
from engine import ChatMessage, ToolCall, WordTiming


def user(item_id: str, text: str = "hello") -> Message:
    return Message(item_id, "user", [Part(PartKind.INPUT_TEXT, text)])


def answer(item_id: str, words: list[str]) -> Message:
    """Each word lasts half a second."""
    text = " ".join(words)
    timings, position = [], 0
    for number, word in enumerate(words):
        end = position + len(word)
        timings.append(WordTiming(word, position, end, number / 2, (number + 1) / 2))
        position = end + 1
    ticks = len(words) * TICKS_PER_SECOND // 2
    return Message(item_id, "assistant", [Part(PartKind.OUTPUT_AUDIO, text, ticks, timings)])


def test_items_go_where_the_client_says() -> None:
    conversation = Conversation("conv", 10)
    assert conversation.add(user("b")) is None
    assert conversation.add(user("d"), None) == "b"
    assert conversation.add(user("a"), "root") is None
    assert conversation.add(user("c"), "b") == "b"
    assert [item.id for item in conversation.items] == ["a", "b", "c", "d"]
    conversation.delete("b")
    assert conversation.previous_of("c") == "a"


@pytest.mark.parametrize(
    ("previous", "item_id", "code"),
    [
        ("nowhere", "new", "item_create_invalid_previous_item_id"),
        (None, "a", "item_create_duplicate_item_id"),
    ],
)
def test_items_that_cannot_be_added(previous: str | None, item_id: str, code: str) -> None:
    conversation = Conversation("conv", 10)
    conversation.add(user("a"))
    with pytest.raises(EventError) as refused:
        conversation.add(user(item_id), previous)
    assert refused.value.code == code
    assert len(conversation.items) == 1


def test_a_conversation_has_an_end() -> None:
    conversation = Conversation("conv", 1)
    conversation.add(user("a"))
    with pytest.raises(EventError, match="at most 1 items"):
        conversation.add(user("b"))
    conversation.append(answer("c", ["the", "server's", "own"]))
    assert len(conversation.items) == 2


@pytest.mark.parametrize(
    ("end_ms", "heard"),
    [
        (0, ""),
        (240, ""),
        (250, "one"),
        (700, "one"),
        (760, "one two"),
        (1500, "one two three"),
        (9999, "one two three"),
    ],
)
def test_a_word_counts_as_heard_from_its_middle_on(end_ms: int, heard: str) -> None:
    conversation = Conversation("conv", 10)
    conversation.append(answer("a", ["one", "two", "three"]))
    conversation.truncate("a", end_ms)
    assert conversation.retrieve("a").as_wire()["content"][0]["transcript"] == heard


def test_the_last_word_of_a_client_counts() -> None:
    conversation = Conversation("conv", 10)
    conversation.append(answer("a", ["one", "two", "three"]))
    conversation.truncate("a", 300)
    conversation.truncate("a", 1200)
    assert conversation.retrieve("a").as_wire()["content"][0]["transcript"] == "one two"


def test_without_word_times_the_text_is_cut_in_proportion() -> None:
    part = Part(PartKind.OUTPUT_AUDIO, "abcdefghij", TICKS_PER_SECOND)
    part.end = TICKS_PER_SECOND // 2
    assert part.heard == "abcde"


def test_words_that_the_voice_has_not_come_to_were_not_heard() -> None:
    """The Thinker may be far ahead of a voice that runs on a busy machine."""
    part = answer("a", ["one", "two"]).parts[0]
    assert part.text is not None
    part.timed = True
    part.end = part.ticks
    part.text += "."
    assert part.heard == "one two."
    part.text += " And more"
    assert part.heard == "one two"
    part.words.clear()
    assert part.heard == ""


@pytest.mark.parametrize("item_id", ["nowhere", "a"])
def test_only_answers_that_are_heard_can_be_truncated(item_id: str) -> None:
    conversation = Conversation("conv", 10)
    conversation.add(user("a"))
    with pytest.raises(EventError) as refused:
        conversation.truncate(item_id, 0)
    assert refused.value.code in ("item_truncate_invalid_item_id", "unsupported_content_type")


@given(st.integers(0, 5000), st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
def test_what_was_heard_is_a_beginning_of_what_was_said(end_ms: int, words: list[str]) -> None:
    part = answer("a", words).parts[0]
    part.end = end_ms * TICKS_PER_SECOND // 1000
    assert (part.text or "").startswith(part.heard or "")


def test_what_a_thinker_reads() -> None:
    heard = answer("b", ["one", "two"])
    heard.parts[0].end = TICKS_PER_SECOND // 2
    unheard = answer("c", ["never"])
    unheard.parts[0].end = 0
    items = [
        user("a", "hi"),
        heard,
        unheard,
        Message("s", "user", [Part(PartKind.INPUT_AUDIO, None)]),
        FunctionCall("d", "call_1", "look", "{}"),
        FunctionCall("e", "call_2", "look", "{}"),
        FunctionOutput("f", "call_1", "seen"),
    ]
    messages = as_messages("Be kind.", items)
    assert [(m.role, m.text) for m in messages] == [
        ("system", "Be kind."),
        ("user", "hi"),
        ("assistant", "one"),
        ("tool", "seen"),
    ]
    assert [call.call_id for call in messages[2].tool_calls] == ["call_1", "call_2"]
    assert messages[3].tool_call_id == "call_1"


def said(role: str, length: int) -> ChatMessage:
    return ChatMessage(role, "x" * length)  # type: ignore[arg-type]


def test_the_oldest_turns_are_left_out_and_the_instructions_kept() -> None:
    system, old, middle, last = (
        said("system", 80),
        said("user", 80),
        said("assistant", 80),
        said("user", 80),
    )
    messages = (system, old, middle, last)
    assert newest(messages, 400) == messages
    assert newest(messages, 300) == (system, middle, last)
    assert newest(messages, 200) == (system, last)
    assert newest(messages, 10) == (system, last), "what is to be answered always stays"
    assert newest((), 10) == ()


def test_a_growing_conversation_seldom_begins_anew() -> None:
    messages = [said("system", 100)]
    beginnings = []
    for number in range(100):
        messages.append(ChatMessage("user", f"{number:04}" * 20))
        kept = newest(messages, 3000)
        assert sum(len(message.text) + 20 for message in kept) <= 3000
        beginnings.append(kept[1].text)
    assert len(set(beginnings)) <= 10


def test_a_result_is_not_kept_without_its_call() -> None:
    call = ChatMessage("assistant", "", (ToolCall("c", "look", "{}"),))
    result = ChatMessage("tool", "x" * 50, tool_call_id="c")
    last = said("user", 50)
    assert newest((call, result, last), 150) == (last,)
    assert newest((call, result, last), 200) == (call, result, last)
