"""The embedded Thinker's calls of functions: required, allowed, cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.settings import Settings
from engine import (
    Chat,
    ChatMessage,
    SpeechParameters,
    TextPayload,
    Tool,
    ToolCall,
    ToolCallPayload,
    UsagePayload,
)
from engine.catalogue import Catalogue, ModelUnavailableError
from engine.deploy_config import StageDeployment
from engine.text_replica import TextReplica
from pipelines.conversation.pipeline import DEFAULT_THINKER, build_thinker
from pipelines.conversation.thinker import ChatToPrompt

# vLLM 0.32 still says how far xgrammar may roll back.
pytestmark = pytest.mark.filterwarnings("ignore:max_rollback_tokens is deprecated")


def function(name: str, description: str, parameter: str) -> Tool:
    properties = {parameter: {"type": "string", "maxLength": 20}}
    schema = {"type": "object", "properties": properties, "required": [parameter]}
    return Tool(name, description, schema)


LIGHT = function("turn_on_light", "Turns on the light in a room.", "room")
MUSIC = function("play_music", "Plays music of an artist.", "artist")
TIMER = function("set_timer", "Sets a timer.", "minutes")
TOOLS = (LIGHT, MUSIC, TIMER)


@pytest.fixture(scope="module")
def thinker() -> Iterator[TextReplica]:
    try:
        folder = Catalogue.installed(Settings().cache_folder).resolve(DEFAULT_THINKER)
    except ModelUnavailableError:
        pytest.skip("the Thinker's model is not here: antiphon models fetch --for conversation")
    deployment = StageDeployment(
        compile="never", max_requests=4, max_steps=1024, key_value_cache_bytes=100 << 20
    )
    replica = build_thinker(folder, deployment)
    assert isinstance(replica, TextReplica)
    yield replica
    replica.close()


def answer(thinker: TextReplica, chat: Chat) -> tuple[str, list[ToolCallPayload], UsagePayload]:
    adapter = ChatToPrompt(thinker.tokenizer)  # type: ignore[arg-type]
    adapter.push(chat)
    adapter.close()
    thinker.add("one", SpeechParameters())
    prompt = adapter.pull()
    assert prompt is not None
    thinker.offer("one", prompt)
    thinker.close_input("one")
    text, calls, usage = "", [], None
    while thinker.requests:
        for made in thinker.step({}):
            match made.output:
                case TextPayload():
                    text += made.output.text
                case ToolCallPayload():
                    calls.append(made.output)
                case UsagePayload():
                    usage = made.output
    assert usage is not None
    return text, calls, usage


def asked(text: str, tool_choice: str = "auto", **options: Any) -> Chat:
    return Chat((ChatMessage("user", text),), TOOLS, tool_choice, **options)


@pytest.mark.parametrize(
    ("question", "name", "argument"),
    [
        ("Turn on the light in the kitchen.", "turn_on_light", "kitchen"),
        ("Could you switch on the bedroom light?", "turn_on_light", "bedroom"),
    ],
)
def test_a_wish_is_a_call(thinker: TextReplica, question: str, name: str, argument: str) -> None:
    text, calls, _ = answer(thinker, asked(question))
    assert text == ""
    assert [call.name for call in calls] == [name]
    assert argument in json.loads(calls[0].arguments).popitem()[1].lower()


@pytest.mark.parametrize(
    "question", ["Hello, how are you?", "What is the capital of France?", "Thank you very much."]
)
def test_small_talk_is_no_call(thinker: TextReplica, question: str) -> None:
    text, calls, _ = answer(thinker, asked(question, max_tokens=30))
    assert calls == []
    assert len(text) > 5


def test_a_result_is_answered_in_words(thinker: TextReplica) -> None:
    _, calls, _ = answer(thinker, asked("Turn on the light in the kitchen."))
    messages = (
        *asked("Turn on the light in the kitchen.").messages,
        ChatMessage("assistant", "", tuple(_as_call(call) for call in calls)),
        ChatMessage("tool", '{"done": true}', tool_call_id=calls[0].call_id),
    )
    text, again, _ = answer(thinker, Chat(messages, TOOLS, "auto", 30))
    assert again == []
    assert text


def _as_call(call: ToolCallPayload) -> ToolCall:
    return ToolCall(call.call_id, call.name, call.arguments)


@pytest.mark.parametrize("tool_choice", ["required", "play_music"])
def test_a_call_that_is_required(thinker: TextReplica, tool_choice: str) -> None:
    text, calls, usage = answer(thinker, asked("Hello, how are you?", tool_choice))
    assert text == ""
    assert len(calls) == 1
    assert tool_choice in ("required", calls[0].name)
    assert isinstance(json.loads(calls[0].arguments), dict)
    assert not usage.truncated


def test_a_call_that_is_cut_off_is_none(thinker: TextReplica) -> None:
    text, calls, usage = answer(thinker, asked("Hello, how are you?", "required", max_tokens=3))
    assert (text, calls) == ("", [])
    assert usage.truncated
