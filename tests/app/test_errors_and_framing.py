from __future__ import annotations

import base64
import json

import pytest

from app.audio.formats import AudioFormat
from app.errors import ApiError, from_engine_error, from_stage_error
from app.metrics import Outcome
from app.speech.framing import AudioFraming, EventFraming
from app.speech.stream import Piece
from app.speech.usage import usage_of
from app.speech.warning import WARNING_HEADER, warning_for
from engine import (
    EngineClosedError,
    EngineOverloadedError,
    ErrorCode,
    InvalidRequestError,
    StageError,
    WordTiming,
)

WORD = WordTiming("Hello,", 0, 6, 0.0512345, 0.3)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidRequestError("speed", "Too fast."), 400, "invalid_value"),
        (EngineOverloadedError("Full.", 0.2), 503, "overloaded"),
        (EngineClosedError(), 503, "shutting_down"),
    ],
)
def test_refusals_of_the_engine(error: Exception, status: int, code: str) -> None:
    told = from_engine_error(error)  # type: ignore[arg-type]
    assert (told.status, told.code) == (status, code)


def test_an_overloaded_engine_says_when_to_come_back_in_whole_seconds() -> None:
    assert from_engine_error(EngineOverloadedError("Full.", 0.2)).headers["Retry-After"] == "1"
    assert from_engine_error(EngineOverloadedError("Full.", 2.1)).headers["Retry-After"] == "3"


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_engine_error_has_a_status_and_an_outcome(code: ErrorCode) -> None:
    told = from_stage_error(StageError(code, "It did not work.", parameter="voice"))
    assert 400 <= told.status < 600
    assert set(told.as_dict()) == {"message", "type", "param", "code"}
    assert Outcome.of_error(code) is not Outcome.COMPLETED


@pytest.mark.parametrize("code", [ErrorCode.DEADLINE_EXCEEDED, ErrorCode.CANCELLED])
def test_clients_are_told_not_to_repeat_what_cannot_succeed(code: ErrorCode) -> None:
    assert from_stage_error(StageError(code, "Over.")).headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "invalid_request_error"),
        (500, "server_error"),
        (503, "server_error"),
    ],
)
def test_types_follow_the_status(status: int, kind: str) -> None:
    assert ApiError(status, "No.").as_dict()["type"] == kind


def _events(data: bytes) -> list[dict[str, object]]:
    blocks = data.decode().split("\n\n")
    assert blocks.pop() == "", "every event ends with an empty line"
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def test_events_carry_padded_base64_on_one_line_each() -> None:
    (event,) = _events(EventFraming(3, with_words=False).piece(Piece(b"abcd", (WORD,), 0.1)))
    assert event["type"] == "speech.audio.delta"
    assert base64.b64decode(str(event["audio"]), validate=True) == b"abcd"


def test_words_come_before_their_audio() -> None:
    word, audio = _events(EventFraming(3, with_words=True).piece(Piece(b"abcd", (WORD,), 0.1)))
    assert word == {
        "type": "speech.word",
        "word": "Hello,",
        "start": 0.0512,
        "end": 0.3,
        "start_character": 0,
        "end_character": 6,
    }
    assert audio["type"] == "speech.audio.delta"


def test_words_do_not_wait_for_an_encoder_that_holds_their_audio_back() -> None:
    (word,) = _events(EventFraming(3, with_words=True).piece(Piece(b"", (WORD,), 0.1)))
    assert word["type"] == "speech.word"


def test_the_end_has_usage_and_no_done_mark() -> None:
    end = EventFraming(14, with_words=False).end(1.0)
    assert _events(end) == [
        {
            "type": "speech.audio.done",
            "usage": {"input_tokens": 14, "output_tokens": 20, "total_tokens": 34},
        }
    ]


def test_a_failure_has_the_shape_that_openais_clients_raise() -> None:
    data = EventFraming(3, with_words=False).failure(ApiError(500, "Broken.", code="stage_failed"))
    assert data is not None
    name, body, *rest = data.decode().split("\n")
    assert name == "event: error"
    assert json.loads(body.removeprefix("data: "))["error"]["message"] == "Broken."
    assert rest == ["", ""]


def test_bare_audio_has_no_words_for_a_failure() -> None:
    framing = AudioFraming(AudioFormat.PCM)
    assert framing.failure(ApiError(500, "Broken.")) is None
    assert framing.piece(Piece(b"ab")) == b"ab"
    assert framing.end(1.0) == b""


@pytest.mark.parametrize(
    ("seconds", "tokens"), [(0.0, 0), (0.001, 1), (0.05, 1), (0.051, 2), (1.05, 21), (60.0, 1200)]
)
def test_usage_counts_begun_fifty_milliseconds(seconds: float, tokens: int) -> None:
    assert usage_of(5, seconds)["output_tokens"] == tokens


def test_the_warning_is_ascii_and_short_whatever_was_left_out() -> None:
    characters = tuple(chr(0x4E00 + index) for index in range(500))
    (value,) = warning_for(characters).values()
    assert value.isascii()
    assert len(value) < 300
    assert "count=500" in value
    assert warning_for(()) == {}
    assert warning_for(("e\u0301",))[WARNING_HEADER].endswith('characters="U+0065+U+0301"')
