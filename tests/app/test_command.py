from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.errors import ApiError
from app.metrics import Transport
from app.settings import Settings
from app.speech.command import SpeechCommand, resolve_speech_request
from app.speech.schema import parse_speech_request
from tests.app.doubles import DESCRIPTION

BASE = {"model": "tts-1", "input": "Hello.", "voice": "alloy"}


def _resolve(settings: Settings | None = None, **changes: object) -> SpeechCommand:
    request = parse_speech_request(json.dumps({**BASE, **changes}).encode())
    return resolve_speech_request(request, DESCRIPTION, settings or Settings())


def _refusal(settings: Settings | None = None, **changes: object) -> ApiError:
    with pytest.raises(ApiError) as raised:
        _resolve(settings, **changes)
    return raised.value


@pytest.mark.parametrize("voice", ["low", "alloy", "ASH", {"id": "marin"}])
def test_names_and_aliases_of_a_voice_mean_the_voice(voice: object) -> None:
    assert _resolve(voice=voice).parameters.voice == "low"


def test_an_unknown_voice_is_refused_with_the_names() -> None:
    refusal = _refusal(voice="nobody")
    assert refusal.param == "voice"
    for name in ("low", "high", "alloy", "nova"):
        assert name in refusal.message


@pytest.mark.parametrize("model", ["hum", "hum-1", "tts-1", "gpt-4o-mini-tts"])
def test_models_and_aliases_are_served(model: str) -> None:
    _resolve(model=model)


def test_an_unknown_model_is_404() -> None:
    refusal = _refusal(model="other")
    assert (refusal.status, refusal.code) == (404, "model_not_found")


def test_any_model_is_served_where_the_setting_says_so() -> None:
    _resolve(Settings(accept_any_model=True), model="other")


def test_the_cap_counts_characters_and_is_a_setting() -> None:
    _resolve(input="ß" * 4096)
    refusal = _refusal(input="a" * 4097)
    assert (refusal.param, refusal.code) == ("input", "string_above_max_length")
    _resolve(Settings(maximum_input_characters=5000), input="a" * 4097)


@pytest.mark.parametrize(
    ("changes", "transport"),
    [
        ({}, Transport.AUDIO),
        ({"stream": False}, Transport.WHOLE),
        ({"stream_format": "sse"}, Transport.EVENTS),
    ],
)
def test_how_the_audio_travels(changes: dict[str, object], transport: Transport) -> None:
    assert _resolve(**changes).transport is transport


def test_events_cannot_be_sent_whole() -> None:
    assert _refusal(stream=False, stream_format="sse").param == "stream"


@pytest.mark.parametrize("changes", [{}, {"stream": False}])
def test_word_times_need_events(changes: dict[str, object]) -> None:
    refusal = _refusal(timestamps="word", **changes)
    assert refusal.param == "timestamps"
    assert "sse" in refusal.message


def test_word_times_need_a_pipeline_that_knows_them() -> None:
    request = parse_speech_request(
        json.dumps({**BASE, "timestamps": "word", "stream_format": "sse"}).encode()
    )
    ignorant = replace(DESCRIPTION, word_timings=False)
    with pytest.raises(ApiError) as raised:
        resolve_speech_request(request, ignorant, Settings())
    assert raised.value.param == "timestamps"
