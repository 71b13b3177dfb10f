"""Clients that leave, stop reading, or stay while the server ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable

import httpx
import pytest
from starlette.types import Message

from app.application import create_application
from app.lifecycle import EngineLifecycle
from app.settings import Settings
from tests.app.doubles import HummingEngine
from tests.app.serving import Serving, serving
from tests.watching import metric, outcomes, until

LONG = "one two three four five six seven eight nine ten " * 80
BODY = {"model": "tts-1", "input": LONG, "voice": "alloy", "response_format": "pcm"}


def _raw_request(
    running: Serving, receive_buffer: int | None = None, **changes: object
) -> socket.socket:
    host, port = running.base_url.removeprefix("http://").split(":")
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect((host, int(port)))
    body = json.dumps({**BODY, **changes}).encode()
    head = (
        "POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.parametrize("changes", [{}, {"response_format": "mp3"}, {"stream_format": "sse"}])
def test_a_client_that_leaves_ends_its_request_within_one_chunk(changes: dict[str, object]) -> None:
    engine = HummingEngine(pace=0.05)
    with serving(engine) as running:
        connection = _raw_request(running, **changes)
        assert connection.recv(100)
        connection.close()
        made_at_close = engine.made
        assert until(lambda: not engine.live)
        assert engine.made <= made_at_close + 2
        assert until(lambda: outcomes(running.base_url) == {"disconnected": 1.0})
        assert metric(running.base_url, "antiphon_speech_active") == 0


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/chat/completions",
        "/v1/realtime/client_secrets",
    ],
)
async def test_a_client_that_leaves_while_it_sends_its_body_is_no_failure(path: str) -> None:
    async def start(_progress: Callable[[str], None]) -> HummingEngine:
        return HummingEngine()

    lifecycle = EngineLifecycle(start)
    app = create_application(Settings(ear=False), lifecycle)
    lifecycle.start()
    await asyncio.sleep(0)
    told = iter([{"type": "http.request", "body": b"{", "more_body": True}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(told, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    await app(scope, receive, send)
    assert sent[0]["status"] == 499
    await lifecycle.close()


def test_a_client_that_leaves_before_the_first_sound() -> None:
    engine = HummingEngine(pace=5)
    with serving(engine) as running:
        connection = _raw_request(running)
        assert until(lambda: engine.live)
        connection.close()
        assert until(lambda: not engine.live)
        assert engine.made == 0
        assert until(lambda: outcomes(running.base_url) == {"disconnected": 1.0})


def test_a_client_that_leaves_while_it_waits_for_a_whole_body() -> None:
    engine = HummingEngine(pace=0.05)
    with serving(engine) as running:
        connection = _raw_request(running, stream=False)
        assert until(lambda: engine.made > 2)
        connection.close()
        assert until(lambda: not engine.live)


def test_a_client_that_leaves_in_the_middle_of_its_request() -> None:
    with serving() as running:
        host, port = running.base_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"
            )
        time.sleep(0.1)
        assert httpx.get(f"{running.base_url}/health").status_code == 200
        assert not running.engine.requests


def test_many_departures_leave_nothing_behind() -> None:
    engine = HummingEngine(pace=0.002)
    with serving(engine) as running:

        async def storm() -> None:
            async with httpx.AsyncClient(base_url=running.base_url, timeout=30) as client:
                await asyncio.gather(*(leave(client, index) for index in range(100)))

        async def leave(client: httpx.AsyncClient, index: int) -> None:
            formats = ("mp3", "pcm", "opus", "flac", "aac", "wav")
            body = {**BODY, "response_format": formats[index % 6]}
            async with client.stream("POST", "/v1/audio/speech", json=body) as response:
                async for _ in response.aiter_raw():
                    break

        asyncio.run(storm())
        assert until(lambda: not engine.live)
        assert until(lambda: outcomes(running.base_url).get("disconnected") == 100)
        assert metric(running.base_url, "antiphon_speech_active") == 0


def test_a_client_that_does_not_read_a_whole_body_is_cut_off() -> None:
    with serving(
        slow_client_seconds=0.4, socket_send_buffer_bytes=8192, write_buffer_bytes=8192
    ) as running:
        connection = _raw_request(running, receive_buffer=4096, stream=False)
        assert until(lambda: outcomes(running.base_url) == {"slow_client": 1.0})
        connection.close()


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_a_client_that_stops_reading_is_cut_off(stream_format: str) -> None:
    engine = HummingEngine()
    with serving(
        engine, slow_client_seconds=0.4, socket_send_buffer_bytes=8192, write_buffer_bytes=8192
    ) as running:
        connection = _raw_request(running, receive_buffer=4096, stream_format=stream_format)
        assert until(lambda: engine.live)
        assert until(lambda: not engine.live)
        assert engine.made < 60, "the engine was made to wait; it did not fill memory"
        assert until(lambda: outcomes(running.base_url) == {"slow_client": 1.0})
        assert metric(running.base_url, "antiphon_speech_active") == 0
        connection.settimeout(5)
        assert not _reads_a_proper_end(connection)
        connection.close()


def _reads_a_proper_end(connection: socket.socket) -> bool:
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        return False
    return received.endswith(b"0\r\n\r\n")


def test_a_client_that_pauses_within_the_limit_gets_everything() -> None:
    engine = HummingEngine()
    with serving(
        engine, slow_client_seconds=5, socket_send_buffer_bytes=8192, write_buffer_bytes=8192
    ) as running:
        connection = _raw_request(running, receive_buffer=4096, input="one two three " * 10)
        time.sleep(0.5)
        assert _reads_a_proper_end(connection)
        connection.close()
        assert until(lambda: outcomes(running.base_url) == {"completed": 1.0})


def test_one_slow_client_does_not_slow_the_others() -> None:
    engine = HummingEngine()
    with serving(
        engine, slow_client_seconds=8, socket_send_buffer_bytes=8192, write_buffer_bytes=8192
    ) as running:
        stalled = _raw_request(running, receive_buffer=4096)
        assert until(lambda: engine.live)
        began = time.monotonic()
        body = {**BODY, "input": "one two three"}
        assert httpx.post(f"{running.base_url}/v1/audio/speech", json=body).status_code == 200
        assert time.monotonic() - began < 5
        stalled.close()
