from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audio.formats import AudioFormat
from app.text_stream.events import (
    ContextCreate,
    EventError,
    TextAppend,
    binary_audio,
    error_event,
    parse_event,
    server_event,
)


def _refusal(text: str) -> EventError:
    with pytest.raises(EventError) as raised:
        parse_event(text)
    return raised.value


def test_a_context_has_pcm_as_its_default() -> None:
    event = parse_event('{"type":"context.create"}')
    assert isinstance(event, ContextCreate)
    assert event.response_format is AudioFormat.PCM
    assert event.context_id is None


def test_text_may_be_a_token() -> None:
    event = parse_event('{"type":"text.append","context_id":"a","text":" wor","event_id":"e"}')
    assert event == TextAppend(type="text.append", context_id="a", text=" wor", event_id="e")


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ("{", None),
        ("[]", None),
        ("7", None),
        ("{}", "type"),
        ('{"type":"response.create"}', "type"),
        ('{"type":3}', "type"),
        ('{"type":"text.append","context_id":"a"}', "text"),
        ('{"type":"text.append","text":"a"}', "context_id"),
        ('{"type":"text.append","context_id":"a b","text":"x"}', "context_id"),
        ('{"type":"text.append","context_id":"","text":"x"}', "context_id"),
        ('{"type":"context.create","speed":9}', "speed"),
        ('{"type":"context.create","voice":{"name":"x"}}', "voice"),
        ('{"type":"context.create","response_format":"ogg"}', "response_format"),
        ('{"type":"session.update","session":{"audio":"mp3"}}', "session.audio"),
        ('{"type":"session.update"}', "session"),
    ],
)
def test_mistakes_name_their_field(text: str, param: str | None) -> None:
    assert _refusal(text).error.param == param


def test_an_error_repeats_the_names_of_the_event_that_caused_it() -> None:
    refusal = _refusal('{"type":"nonsense","event_id":"e1","context_id":"a"}')
    event = json.loads(error_event(refusal))
    assert event["error"]["event_id"] == "e1"
    assert event["context_id"] == "a"
    assert event["event_id"] != "e1"


def test_unknown_types_are_answered_with_the_known_ones() -> None:
    assert "'text.append'" in _refusal('{"type":"nonsense"}').error.message


@given(st.text())
def test_any_text_is_an_event_or_a_refusal(text: str) -> None:
    with pytest.raises(EventError):
        parse_event(text)


def test_server_events_leave_out_what_they_do_not_know() -> None:
    event = json.loads(server_event("context.flushed", context_id="a", client_event_id=None))
    assert set(event) == {"type", "event_id", "context_id"}


def test_binary_frames_name_their_context() -> None:
    frame = binary_audio("ctx", b"\x01\x02")
    assert frame == b"\x03ctx\x01\x02"
