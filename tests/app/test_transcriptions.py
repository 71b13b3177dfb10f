"""`POST /v1/audio/transcriptions` with the real ear."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Generator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import soundfile

from tests.app.serving import Serving, serving
from tests.ears import need_ear
from tests.voices import RATE, recorded
from tests.watching import until

WORDS = "might even have been made amiable himself"


@pytest.fixture(scope="module")
def hearing() -> Generator[Serving]:
    need_ear()
    with serving(ear=True) as running:
        yield running


@pytest.fixture(scope="module")
def wav() -> bytes:
    name = "librivox/sense_and_sensibility_01_austen_64kb-0930.wav"
    out = io.BytesIO()
    soundfile.write(out, recorded(name), RATE, format="WAV")
    return out.getvalue()


def post(running: Serving, wav: bytes, **fields: Any) -> httpx.Response:
    return httpx.post(
        f"{running.base_url}/v1/audio/transcriptions",
        files={"file": ("speech.wav", wav)},
        data={"model": "whisper-1", **fields},
        timeout=60,
    )


def test_the_sdk_gets_text_and_usage(hearing: Serving, wav: bytes) -> None:
    client = openai.OpenAI(base_url=f"{hearing.base_url}/v1", api_key="none", max_retries=0)
    answer = client.audio.transcriptions.create(file=("speech.wav", wav), model="whisper-1")
    assert WORDS in answer.text.lower()
    assert answer.usage is not None
    assert answer.usage.type == "duration"


def test_times_of_words_and_segments(hearing: Serving, wav: bytes) -> None:
    client = openai.OpenAI(base_url=f"{hearing.base_url}/v1", api_key="none", max_retries=0)
    answer = client.audio.transcriptions.create(
        file=("speech.wav", wav),
        model="whisper-1",
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert answer.words is not None
    starts = [word.start for word in answer.words]
    assert starts == sorted(starts)
    assert answer.segments
    assert 0 <= starts[0] < starts[-1] < answer.duration < 4
    assert answer.language == "en"
    assert "amiable" in [word.word.strip(".,").lower() for word in answer.words]


def test_streamed_deltas_make_the_text(hearing: Serving, wav: bytes) -> None:
    client = openai.OpenAI(base_url=f"{hearing.base_url}/v1", api_key="none", max_retries=0)
    events = list(
        client.audio.transcriptions.create(
            file=("speech.wav", wav), model="gpt-4o-mini-transcribe", stream=True
        )
    )
    deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
    done = events[-1]
    assert done.type == "transcript.text.done"
    assert "".join(deltas).strip() == done.text
    assert WORDS in done.text.lower()


@pytest.mark.parametrize(
    ("text_format", "begins"), [("text", "He"), ("srt", "1\n00:00:0"), ("vtt", "WEBVTT\n\n00:0")]
)
def test_other_forms(hearing: Serving, wav: bytes, text_format: str, begins: str) -> None:
    answer = post(hearing, wav, response_format=text_format)
    assert answer.status_code == 200
    assert answer.text.startswith(begins)
    assert WORDS in answer.text.lower()


@pytest.mark.parametrize(
    ("fields", "param", "status"),
    [
        ({"response_format": "poem"}, "response_format", 400),
        ({"temperature": "hot"}, "temperature", 400),
        ({"model": "nobody"}, "model", 404),
        ({"colour": "blue"}, "colour", 400),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities", 400),
        ({"timestamp_granularities[]": "letter"}, "timestamp_granularities", 400),
        ({"stream": "maybe"}, "stream", 400),
        ({"stream": "true", "response_format": "srt"}, "response_format", 400),
        ({"language": "de"}, "language", 400),
    ],
)
def test_mistakes_are_named(
    hearing: Serving, wav: bytes, fields: dict[str, str], param: str, status: int
) -> None:
    answer = post(hearing, wav, **fields)
    assert answer.status_code == status
    assert answer.json()["error"]["param"] == param


def test_a_language_may_name_a_region(hearing: Serving, wav: bytes) -> None:
    assert WORDS in post(hearing, wav, language="en-US").json()["text"].lower()


@pytest.mark.parametrize("content", [b"", b"no sound at all", b"RIFF\x00\x00\x00\x00WAVE"])
def test_files_that_are_no_recordings(hearing: Serving, content: bytes) -> None:
    answer = post(hearing, content)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "file"


def test_requests_that_are_no_forms(hearing: Serving) -> None:
    url = f"{hearing.base_url}/v1/audio/transcriptions"
    assert httpx.post(url, json={}).status_code == 400
    headers = {"content-type": "multipart/form-data"}
    assert httpx.post(url, content=b"x", headers=headers).status_code == 400


def test_recordings_that_are_too_large() -> None:
    with serving(ear=False, transcription_bytes=2048) as running:
        answer = post(running, bytes(100_000))
    assert answer.status_code == 413
    assert json.loads(answer.text)["error"]["code"] == "request_too_large"


def flac(seconds: int) -> bytes:
    """Silence, which takes next to no bytes."""
    out = io.BytesIO()
    soundfile.write(out, np.zeros(seconds * RATE, np.int16), RATE, format="FLAC")
    return out.getvalue()


def test_recordings_that_last_too_long_are_refused_before_they_are_decoded() -> None:
    need_ear()
    with serving(ear=True, transcription_seconds=2.0) as running:
        assert post(running, flac(2)).status_code == 200
        hour = flac(3600)
        began = time.monotonic()
        answer = post(running, hour)
        took = time.monotonic() - began
    began = time.monotonic()
    for _ in soundfile.blocks(io.BytesIO(hour), 65_536):
        pass
    assert took < time.monotonic() - began, "as long as decoding takes on this machine"
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == ("file", "recording_too_long")
    assert "2 s" in error["message"]


def test_transcriptions_beyond_what_the_server_takes_at_once_come_back_later() -> None:
    with serving(transcriptions=1) as running:
        head = b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
        port = int(running.base_url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(head)
            assert until(lambda: post(running, b"").status_code == 503)
            answer = post(running, b"")
        assert answer.json()["error"]["code"] == "overloaded"
        assert int(answer.headers["retry-after"]) >= 1
        assert until(lambda: post(running, b"").json()["error"]["code"] != "overloaded")
