from __future__ import annotations

import asyncio
import base64
import json
import re
import time

import httpx
import numpy as np
import pytest

from app.audio.formats import AudioFormat
from app.routes.speech import INLINE_BODY_BYTES
from tests.app.decoding import decode
from tests.app.doubles import WORD_SAMPLES, HummingEngine
from tests.app.serving import Serving, serving

BODY = {"model": "tts-1", "input": "one two three four five", "voice": "alloy"}
SAMPLES = 5 * WORD_SAMPLES


def _speak(client: httpx.Client, **changes: object) -> httpx.Response:
    return client.post("/v1/audio/speech", json={**BODY, **changes})


def _error(response: httpx.Response) -> dict[str, object]:
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert response.headers["x-request-id"].startswith("req_")
    error: dict[str, object] = body["error"]
    return error


@pytest.mark.parametrize("audio_format", list(AudioFormat))
@pytest.mark.parametrize("stream", [True, False])
def test_every_format(client: httpx.Client, audio_format: AudioFormat, stream: bool) -> None:
    response = _speak(client, response_format=audio_format, stream=stream)
    assert response.status_code == 200
    assert response.headers["content-type"] == audio_format.media_type
    if stream:
        assert response.headers["transfer-encoding"] == "chunked"
        assert "content-length" not in response.headers
    else:
        assert int(response.headers["content-length"]) == len(response.content)
    if audio_format is AudioFormat.PCM:
        assert len(response.content) == 2 * SAMPLES
    else:
        decoded, rate = decode(response.content)
        assert 0 <= len(decoded) * 24_000 / rate - SAMPLES <= 1105 + 2 * 1152


def test_headers(client: httpx.Client) -> None:
    response = _speak(client)
    assert response.headers["content-type"] == "audio/mpeg", "mp3 is the default"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert re.fullmatch(r"req_[0-9a-f]{24}", response.headers["x-request-id"])
    assert re.fullmatch(r"first-audio;dur=\d+\.\d", response.headers["server-timing"])
    assert "x-antiphon-warning" not in response.headers


def test_what_is_left_out_is_told_in_ascii(client: httpx.Client) -> None:
    response = _speak(client, input="hello 世界")
    warning = response.headers["x-antiphon-warning"]
    assert warning == 'left-out; count=2; characters="U+4E16 U+754C"'


def test_accept_headers_do_not_matter(client: httpx.Client) -> None:
    headers = {"Accept": "application/octet-stream"}
    body = {**BODY, "stream_format": "sse"}
    response = client.post("/v1/audio/speech", json=body, headers=headers)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8" or (
        response.headers["content-type"] == "text/event-stream"
    )


def test_a_missing_content_type_does_not_matter(client: httpx.Client) -> None:
    response = client.post("/v1/audio/speech", content=json.dumps(BODY))
    assert response.status_code == 200


@pytest.mark.parametrize("audio_format", ["pcm", "mp3", "flac", "aac", "wav"])
def test_events_carry_the_bytes_of_the_bare_stream(client: httpx.Client, audio_format: str) -> None:
    bare = _speak(client, response_format=audio_format).content
    text = _speak(client, response_format=audio_format, stream_format="sse").text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert events[-1] == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": 23, "output_tokens": 20, "total_tokens": 43},
    }
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    parts = [base64.b64decode(event["audio"], validate=True) for event in events[:-1]]
    assert b"".join(parts) == bare
    if audio_format == "pcm":
        assert all(len(part) % 2 == 0 for part in parts)
    assert "[DONE]" not in text


def test_word_times_come_before_the_sound_they_belong_to(client: httpx.Client) -> None:
    response = _speak(client, response_format="pcm", stream_format="sse", timestamps="word")
    sent = 0.0
    words = []
    for line in response.text.splitlines():
        if not line.startswith("data: "):
            continue
        event = json.loads(line[6:])
        if event["type"] == "speech.word":
            words.append(event["word"])
            assert event["start"] >= sent - 1e-6
            assert BODY["input"][event["start_character"] : event["end_character"]] == words[-1]
        elif event["type"] == "speech.audio.delta":
            sent += len(base64.b64decode(event["audio"])) / 48_000
    assert words == str(BODY["input"]).split()


def test_no_word_times_unless_asked_for(client: httpx.Client) -> None:
    assert "speech.word" not in _speak(client, stream_format="sse").text


@pytest.mark.parametrize(
    ("changes", "status", "param"),
    [
        ({"voice": "nobody"}, 400, "voice"),
        ({"speed": 9}, 400, "speed"),
        ({"input": ""}, 400, "input"),
        ({"input": " \n\t"}, 400, "input"),
        ({"input": "?!…"}, 400, "input"),
        ({"input": "x" * 4097}, 400, "input"),
        ({"input": "世界" * 600}, 400, "input"),
        ({"model": "unknown"}, 404, "model"),
        ({"response_format": "ogg"}, 400, "response_format"),
        ({"timestamps": "word"}, 400, "timestamps"),
        ({"stream": False, "stream_format": "sse"}, 400, "stream"),
        ({"input": "INVALID"}, 400, "input"),
        ({"input": "FAIL"}, 500, None),
        ({"input": "BROKEN"}, 500, None),
        ({"input": "BUSY"}, 503, None),
    ],
)
@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_failures_before_the_first_sound_are_http_errors(
    client: httpx.Client,
    changes: dict[str, object],
    status: int,
    param: str | None,
    stream_format: str,
) -> None:
    response = _speak(client, **{"stream_format": stream_format, **changes})
    if stream_format == "sse" and changes == {"timestamps": "word"}:
        assert response.status_code == 200
        return
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert _error(response)["param"] == param
    if status == 503:
        assert response.headers["retry-after"] == "3"


@pytest.mark.parametrize("audio_format", ["pcm", "mp3", "wav"])
@pytest.mark.parametrize("stream", [True, False])
def test_no_sound_at_all_is_a_failure(
    client: httpx.Client, audio_format: str, stream: bool
) -> None:
    response = _speak(client, input="SILENCE", response_format=audio_format, stream=stream)
    assert response.status_code == 500
    assert _error(response)["code"] == "no_audio"


def test_a_mistake_of_the_server_is_not_told_in_detail(client: httpx.Client) -> None:
    assert "engine" not in str(_error(_speak(client, input="BROKEN"))["message"])


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_a_bare_stream_that_fails_is_broken_off(
    client: httpx.Client, audio_format: AudioFormat
) -> None:
    body = {**BODY, "input": "one two three FAIL", "response_format": audio_format}
    received, failure = _read_until_cut(client, body)
    assert "incomplete" in str(failure)
    if audio_format is AudioFormat.PCM:
        assert len(received) == 3 * 2 * WORD_SAMPLES, "what was made is still delivered"


def _read_until_cut(
    client: httpx.Client, body: dict[str, object]
) -> tuple[bytes, httpx.RemoteProtocolError | None]:
    received = b""
    with client.stream("POST", "/v1/audio/speech", json=body) as response:
        assert response.status_code == 200
        try:
            for part in response.iter_raw():
                received += part
        except httpx.RemoteProtocolError as failure:
            return received, failure
    return received, None


def test_an_event_stream_that_fails_says_so_and_ends(client: httpx.Client) -> None:
    text = _speak(client, input="one two FAIL", stream_format="sse").text
    assert "event: error\ndata: " in text
    last = json.loads(text.rstrip().splitlines()[-1].removeprefix("data: "))
    assert last["error"]["code"] == "stage_failed"
    assert "speech.audio.done" not in text


def test_a_whole_body_that_fails_is_an_http_error(client: httpx.Client) -> None:
    assert _speak(client, input="one two FAIL", stream=False).status_code == 500


def test_streamed_and_whole_carry_the_same_samples(client: httpx.Client) -> None:
    streamed = _speak(client, response_format="wav").content
    whole = _speak(client, response_format="wav", stream=False).content
    assert streamed[44:] == whole[44:]
    assert int.from_bytes(whole[40:44], "little") == len(whole) - 44
    assert streamed[40:44] == b"\xff" * 4
    assert np.array_equal(decode(streamed)[0], decode(whole)[0])


def test_parameters_reach_the_engine(humming: Serving, client: httpx.Client) -> None:
    _speak(client, voice={"id": "nova"}, speed=1.5, seed=7, instructions="Whisper.")
    request = humming.engine.requests[-1]
    assert request.parameters.voice == "high"
    assert request.parameters.speed == 1.5
    assert request.parameters.seed == 7
    assert request.parameters.instructions == "Whisper."


def test_request_identifiers_are_shared_with_the_engine(
    humming: Serving, client: httpx.Client
) -> None:
    response = _speak(client)
    assert humming.engine.requests[-1].request_id == response.headers["x-request-id"]


def test_a_body_above_the_limit_is_refused_while_it_comes() -> None:
    with serving(maximum_body_bytes=2048) as running, httpx.Client() as client:
        url = f"{running.base_url}/v1/audio/speech"
        response = client.post(url, json={**BODY, "input": "a" * 4000})
        assert response.status_code == 413
        assert _error(response)["code"] == "request_too_large"


def test_mistakes_in_large_bodies_are_named_too(client: httpx.Client) -> None:
    body = {**BODY, "ref_audio": "?" * 2 * INLINE_BODY_BYTES}
    response = client.post("/v1/audio/speech", json=body)
    assert response.status_code == 400
    assert _error(response)["param"] == "ref_audio"


def test_a_whole_body_above_the_limit_is_refused() -> None:
    with serving(maximum_whole_bytes=20_000) as running, httpx.Client() as client:
        url = f"{running.base_url}/v1/audio/speech"
        response = client.post(url, json={**BODY, "response_format": "wav", "stream": False})
        assert response.status_code == 400
        assert _error(response)["param"] == "stream"
        assert not running.engine.live


@pytest.mark.parametrize("audio_format", ["wav", "flac"])
def test_a_whole_body_above_the_limit_is_not_made_to_its_end(audio_format: str) -> None:
    with serving(maximum_whole_bytes=20_000) as running, httpx.Client() as client:
        url = f"{running.base_url}/v1/audio/speech"
        body = {**BODY, "input": "one " * 500, "response_format": audio_format, "stream": False}
        assert client.post(url, json=body).status_code == 400
        assert running.engine.made < 100


def test_signed_wav_sizes_are_a_setting() -> None:
    with serving(streamed_wav_size="signed") as running, httpx.Client() as client:
        url = f"{running.base_url}/v1/audio/speech"
        body = client.post(url, json={**BODY, "response_format": "wav"}).content
        assert int.from_bytes(body[40:44], "little", signed=True) > 0


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_sound_is_sent_while_the_rest_is_being_made(stream_format: str) -> None:
    pace = 0.1
    with serving(HummingEngine(pace=pace)) as running:
        body = {**BODY, "response_format": "pcm", "stream_format": stream_format}
        began = time.monotonic()
        arrivals = []
        with httpx.stream("POST", f"{running.base_url}/v1/audio/speech", json=body) as response:
            for _ in response.iter_raw():
                arrivals.append(time.monotonic() - began)
    assert len(arrivals) >= 5, "one part for each word"
    assert arrivals[0] < arrivals[-1] - 3 * pace


def test_health_answers_while_many_streams_are_encoded() -> None:
    async def measure(base_url: str) -> tuple[float, float]:
        async with httpx.AsyncClient(base_url=base_url, timeout=60) as client:

            async def speak() -> None:
                body = {**BODY, "input": "one two three four five " * 10}
                assert (await client.post("/v1/audio/speech", json=body)).status_code == 200

            streams = [asyncio.create_task(speak()) for _ in range(8)]
            started, worst = time.monotonic(), 0.0
            while not all(stream.done() for stream in streams):
                began = time.monotonic()
                assert (await client.get("/health")).status_code == 200
                worst = max(worst, time.monotonic() - began)
            whole = time.monotonic() - started
            await asyncio.gather(*streams)
            return worst, whole

    with serving() as running:
        worst, whole = asyncio.run(measure(running.base_url))
    assert worst < whole / 2
