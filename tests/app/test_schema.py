from __future__ import annotations

import contextlib
import json
import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audio.formats import AudioFormat
from app.errors import ApiError
from app.speech.command import decode_reference
from app.speech.schema import VoiceReference, parse_speech_request

BASE = {"model": "tts-1", "input": "Hello.", "voice": "alloy"}


def _parse(**changes: object) -> object:
    return parse_speech_request(json.dumps({**BASE, **changes}).encode())


def _refusal(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as raised:
        parse_speech_request(body)
    assert raised.value.status == 400
    return raised.value


def test_defaults_are_openais() -> None:
    request = parse_speech_request(json.dumps(BASE).encode())
    assert request.response_format is AudioFormat.MP3
    assert request.speed == 1.0
    assert request.stream_format == "audio"
    assert request.stream is True


def test_both_forms_of_a_voice() -> None:
    assert _parse(voice="nova").voice == "nova"  # type: ignore[attr-defined]
    assert _parse(voice={"id": "voice_1"}).voice == VoiceReference(id="voice_1")  # type: ignore[attr-defined]


@pytest.mark.parametrize("speed", [0.25, 1, 1.0, 4, 4.0])
def test_speeds_that_are_allowed(speed: float) -> None:
    assert _parse(speed=speed).speed == speed  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("speed", 0.2499),
        ("speed", 4.001),
        ("speed", math.nan),
        ("speed", math.inf),
        ("speed", "1.0"),
        ("speed", True),
        ("response_format", "ogg"),
        ("response_format", 3),
        ("stream_format", "events"),
        ("stream", "yes"),
        ("stream", 1),
        ("seed", -1),
        ("seed", 1.5),
        ("seed", 2**63),
        ("timestamps", "character"),
        ("instructions", "x" * 4097),
        ("instructions", 7),
        ("input", 7),
        ("input", ["a"]),
        ("model", ""),
        ("model", 1),
        ("voice", 1),
        ("voice", {}),
        ("voice", {"id": ""}),
        ("voice", {"id": 1}),
        ("voice", ["alloy"]),
    ],
)
def test_wrong_values_name_their_field(field: str, value: object) -> None:
    refusal = _refusal(json.dumps({**BASE, field: value}).encode())
    assert refusal.param == field
    assert refusal.message.endswith(".")


@pytest.mark.parametrize("field", ["model", "input", "voice"])
@pytest.mark.parametrize("as_null", [True, False])
def test_missing_fields_are_named(field: str, as_null: bool) -> None:
    body: dict[str, object] = dict(BASE)
    if as_null:
        body[field] = None
    else:
        del body[field]
    refusal = _refusal(json.dumps(body).encode())
    assert (refusal.param, refusal.code) == (field, "missing_required_parameter")


def test_nulls_of_optional_fields_mean_their_defaults() -> None:
    names = ("speed", "instructions", "response_format", "stream_format", "stream", "seed")
    assert _parse(**dict.fromkeys(names)) == _parse()


def test_unknown_keys_are_ignored_with_a_word_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="app.speech.schema"):
        assert _parse(normalization_options={"a": 1}, lang_code="a") == _parse()
    assert "lang_code, normalization_options" in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"model": }',
        b"[" * 100_000,
        b'{"model":"a","input":"\\ud800","voice":"b"}',
        b"input=hello&voice=alloy",
    ],
)
def test_what_is_no_json_is_a_400(body: bytes) -> None:
    assert _refusal(body).code == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"null", b"3", b'"text"'])
def test_what_is_no_object_is_a_400(body: bytes) -> None:
    assert _refusal(body).param is None


def test_long_values_are_not_repeated_in_full() -> None:
    refusal = _refusal(json.dumps({**BASE, "instructions": "x" * 100_000}).encode())
    assert len(refusal.message) < 300
    assert refusal.code == "string_above_max_length"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(["model", "input", "voice", "speed", "seed", "stream", "timestamps", "x"]),
        json_values,
    )
)
def test_any_object_is_either_read_or_refused(body: dict[str, object]) -> None:
    with contextlib.suppress(ApiError):
        parse_speech_request(json.dumps(body).encode())


@pytest.mark.parametrize("form", ["UklGRg==", "data:audio/wav;base64,UklGRg=="])
def test_reference_audio_is_base64_or_a_data_url(form: str) -> None:
    assert decode_reference(form) == b"RIFF"
    assert decode_reference(None) is None


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("not base64!", "no base64"),
        ("data:audio/wav,UklGRg==", "a data URL must read"),
        ("data:audio/wav;base64", "a data URL must read"),
        ("https://example.org/voice.wav", "no base64"),
    ],
)
def test_other_reference_audio_is_refused(form: str, words: str) -> None:
    with pytest.raises(ApiError, match=words) as refusal:
        decode_reference(form)
    assert refusal.value.param == "ref_audio"
