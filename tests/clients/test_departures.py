"""Clients that leave or stop reading, against the real engine: nothing of them stays behind."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import httpx

from tests.clients.speaking import SENTENCE, is_idle
from tests.watching import metric, outcomes, until

LONG = f"{SENTENCE} " * 60
BODY = {"model": "lark", "voice": "lark", "input": LONG, "response_format": "pcm"}


def test_a_storm_of_departures_leaves_every_gauge_at_zero(running_server: str) -> None:
    async def leave(client: httpx.AsyncClient, index: int) -> None:
        formats = ("mp3", "pcm", "opus", "flac", "aac", "wav")
        body = {**BODY, "response_format": formats[index % 6]}
        if index % 3 == 0:
            body["stream_format"] = "sse"
        async with client.stream("POST", "/v1/audio/speech", json=body) as response:
            if response.status_code == httpx.codes.OK:
                async for _ in response.aiter_raw():
                    break

    async def storm(count: int) -> None:
        async with httpx.AsyncClient(base_url=running_server, timeout=60) as client:
            for start in range(0, count, 10):
                await asyncio.gather(*(leave(client, start + index) for index in range(10)))

    before = outcomes(running_server).get("disconnected", 0)
    asyncio.run(storm(40))
    assert until(lambda: is_idle(running_server))
    assert outcomes(running_server)["disconnected"] > before
    assert httpx.get(f"{running_server}/ready").status_code == 200


def test_a_client_that_leaves_before_the_first_sound(running_server: str) -> None:
    host, port = running_server.removeprefix("http://").split(":")
    body = json.dumps(BODY).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(10):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head.encode() + body)
    assert until(lambda: is_idle(running_server))


def stands_still(base_url: str, seconds: float) -> bool:
    """Whether no stage takes a step in that time."""
    steps = metric(base_url, "antiphon_stage_step_seconds_count")
    time.sleep(seconds)
    return steps == metric(base_url, "antiphon_stage_step_seconds_count")


def test_a_stalled_client_makes_the_engine_wait(running_server: str) -> None:
    host, port = running_server.removeprefix("http://").split(":")
    body = json.dumps(BODY).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.sendall(head.encode() + body)
        assert until(lambda: metric(running_server, "antiphon_requests_running") == 1)
        # Filled are the socket, the write buffer and the edges of the engine; then nothing moves.
        assert until(lambda: stands_still(running_server, 1.0), 60)
        before = metric(running_server, "process_resident_memory_bytes")
        assert stands_still(running_server, 2.0)
        assert metric(running_server, "process_resident_memory_bytes") < 1.01 * before
        assert metric(running_server, "antiphon_requests_running") == 1
        began = time.monotonic()
        other = {**BODY, "input": "Yes."}
        answered = httpx.post(f"{running_server}/v1/audio/speech", json=other, timeout=30)
        assert answered.status_code == 200
        assert time.monotonic() - began < 10
    assert until(lambda: is_idle(running_server))
