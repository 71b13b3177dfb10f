"""`POST /v1/chat/completions`, by OpenAI's own client; the answers come by rote."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import socket
from collections.abc import Generator
from typing import Any

import httpx
import openai
import pytest
import soundfile

from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.ears import need_ear
from tests.voices import RATE, synthesized
from tests.watching import until


@pytest.fixture(scope="module")
def rote() -> Generator[Serving]:
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture
def client(rote: Serving) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{rote.base_url}/v1", api_key="none", max_retries=0)


ASKED: dict[str, Any] = {"model": "rote", "messages": [{"role": "user", "content": "hello you"}]}
HEARD: dict[str, Any] = {**ASKED, "modalities": ["text", "audio"]}


def test_a_written_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**ASKED)
    assert answer.choices[0].message.content == "You said: hello you"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 4


@pytest.mark.parametrize("audio_format", ["wav", "mp3", "flac", "opus", "aac", "pcm16"])
def test_a_spoken_answer(client: openai.OpenAI, audio_format: str) -> None:
    answer = client.chat.completions.create(
        **HEARD, audio={"voice": "alloy", "format": audio_format}
    )
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert audio.transcript == "You said: hello you"
    data = base64.b64decode(audio.data)
    if audio_format == "pcm16":
        assert len(data) == 4 * 9600
    elif audio_format in ("wav", "flac"):
        samples, rate = soundfile.read(io.BytesIO(data))
        assert len(samples) / rate == pytest.approx(0.8)
    else:
        assert len(data) > 1000


def test_a_streamed_spoken_answer(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            **HEARD,
            audio={"voice": "alloy", "format": "pcm16"},
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [c.choices[0].delta.model_dump() for c in chunks if c.choices]
    audio = [delta["audio"] for delta in deltas if delta.get("audio")]
    assert "".join(a.get("transcript") or "" for a in audio) == "You said: hello you"
    assert sum(len(base64.b64decode(a.get("data") or "")) for a in audio) == 4 * 9600
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage is not None


def test_a_streamed_written_answer(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(**ASKED, stream=True))
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == "You said: hello you"


def test_tools(client: openai.OpenAI) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    answer = client.chat.completions.create(
        **ASKED,
        tools=[tool],  # type: ignore[list-item]
        tool_choice="required",
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].function.name == "weather"  # type: ignore[union-attr]


def called(arguments: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "poem"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
            "messages[0].content[0].text",
        ),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [called("{oops")]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [called("[1]")]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"response_format": {"type": "json_object"}}, "response_format.type"),
        ({"logprobs": True}, "logprobs"),
        ({"modalities": ["audio"]}, "audio"),
        ({"model": "nobody"}, "model"),
        ({"modalities": ["audio"], "audio": {"voice": "nobody"}}, "audio.voice"),
        ({"modalities": ["audio"], "audio": {"format": "wav"}, "stream": True}, "audio.format"),
        ({"n": 2}, "n"),
    ],
)
def test_mistakes_are_named(rote: Serving, changes: dict[str, Any], param: str) -> None:
    answer = httpx.post(f"{rote.base_url}/v1/chat/completions", json={**ASKED, **changes})
    assert answer.status_code in (400, 404)
    assert str(answer.json()["error"]["param"]).startswith(param)


def test_half_a_character_is_no_json(rote: Serving) -> None:
    """A lone surrogate, which JSON can write and no tokenizer can read."""
    body = json.dumps({**ASKED, "messages": [{"role": "user", "content": "\ud800"}]})
    answer = httpx.post(f"{rote.base_url}/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_json"


def test_failures(rote: Serving, client: openai.OpenAI) -> None:
    failing = {**ASKED, "messages": [{"role": "user", "content": "FAIL now"}]}
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**failing)
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(**failing, stream=True))


def test_clients_that_leave_stop_the_engine() -> None:
    engine = RoteEngine(pace=0.05)
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        asked = {**ASKED, "messages": [{"role": "user", "content": "LONG"}]}
        url = f"{running.base_url}/v1/chat/completions"
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url, json=asked, timeout=0.3)
        with httpx.stream("POST", url, json={**asked, "stream": True}) as answer:
            next(answer.iter_text())
        assert until(lambda: not engine.live)
        assert engine.words_made < 40


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_stops_reading_is_cut_off(stream: bool) -> None:
    engine = RoteEngine()
    limits = {"slow_client_seconds": 0.3, "socket_send_buffer_bytes": 8192}
    messages = [{"role": "user", "content": "LONG"}]
    voice = {"voice": "alloy", "format": "pcm16"}
    asked = {**HEARD, "messages": messages, "audio": voice, "stream": stream}
    with (
        serving(engine, ear=False, write_buffer_bytes=8192, **limits) as running,  # type: ignore[arg-type]
        socket.socket() as raw,
    ):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", int(running.base_url.rpartition(":")[2])))
        body = json.dumps(asked).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
        raw.sendall(head.encode() + b"\r\n\r\n" + body)
        request_id = re.search(rb"x-request-id: (\S+)", raw.recv(1024).lower())
        assert request_id is not None
        name = request_id[1].decode()
        assert until(lambda: name in engine.ended_for)
        assert engine.ended_for == {name: "slow_client"}
        raw.settimeout(5)
        rest = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while data := raw.recv(1 << 16):
                rest += data
        assert not rest.endswith(b"]\n\n\r\n0\r\n\r\n"), "it does not look complete"
        assert len(rest) < 300_000


def test_speech_in_a_message_is_understood() -> None:
    need_ear()
    out = io.BytesIO()
    soundfile.write(out, synthesized("What is the weather like today?"), RATE, format="WAV")
    data = base64.b64encode(out.getvalue()).decode()
    content = [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]
    asked = {"model": "rote", "messages": [{"role": "user", "content": content}]}
    with serving(RoteEngine(), ear=True) as running:  # type: ignore[arg-type]
        url = f"{running.base_url}/v1/chat/completions"
        answer = httpx.post(url, json=asked, timeout=30).json()
        assert "weather" in answer["choices"][0]["message"]["content"].lower()
        content[0]["input_audio"]["data"] = "%%"  # type: ignore[index]
        refused = httpx.post(url, json=asked, timeout=30)
        assert refused.json()["error"]["param"] == "messages[0].content[0].input_audio.data"
