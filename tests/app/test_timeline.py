"""Where a request's time went, as clients are told; over a real socket, with the humming engine."""

from __future__ import annotations

import json
import time

import httpx
import pytest
from websockets.sync.client import connect

from app.timeline import Endpoint, RequestRecord, Timelines, TraceContext
from engine import OmniRequest, TextInput
from tests.app.doubles import HummingEngine
from tests.app.serving import Serving, serving
from tests.watching import until

BODY = {"model": "tts-1", "voice": "alloy", "input": "one two three", "response_format": "pcm"}


def _timeline(client: httpx.Client, request_id: str) -> dict[str, object]:
    response = client.get(f"/v1/requests/{request_id}/timeline")
    assert response.status_code == 200
    told: dict[str, object] = response.json()
    return told


def _ended(client: httpx.Client, request_id: str) -> dict[str, object]:
    """A client may have all of a response a moment before the server is done with it."""
    assert until(lambda: _timeline(client, request_id)["status"] != "running")
    return _timeline(client, request_id)


@pytest.mark.parametrize("more", [{}, {"stream": False}, {"stream_format": "sse"}])
def test_a_speech_request_can_be_looked_up_by_its_header(
    client: httpx.Client, more: dict[str, object]
) -> None:
    response = client.post("/v1/audio/speech", json={**BODY, **more})
    request_id = response.headers["X-Request-Id"]
    told = _ended(client, request_id)
    assert told["id"] == request_id
    assert (told["object"], told["endpoint"]) == ("request.timeline", "speech")
    assert told["status"] == "completed"
    assert abs(float(str(told["received_at"])) - time.time()) < 30
    moments = [
        told[f"{name}_at_ms"]
        for name in ("admitted", "opened", "first_audio", "first_sent", "ended")
    ]
    assert None not in moments
    assert moments == sorted(moments)  # type: ignore[type-var]
    assert told["audio_seconds"] == pytest.approx(0.6)
    (stage,) = told["stages"]  # type: ignore[misc]
    assert stage["stage"] == "hum"
    assert stage["steps"] == 4
    assert stage["first_output_at_ms"] <= stage["ended_at_ms"]


def test_what_has_not_happened_yet_is_null(client: httpx.Client, humming: Serving) -> None:
    with client.stream("POST", "/v1/audio/speech", json={**BODY, "input": "x " * 2000}) as response:
        pieces = response.iter_raw()  # that is let go of ends the response
        next(pieces)
        told = _timeline(client, response.headers["X-Request-Id"])
    assert told["status"] == "running"
    assert told["ended_at_ms"] is None
    assert told["first_sent_at_ms"] is not None


def test_a_failed_request_has_one_too(client: httpx.Client) -> None:
    response = client.post("/v1/audio/speech", json={**BODY, "input": "FAIL"})
    assert response.status_code == 500
    told = _ended(client, response.headers["X-Request-Id"])
    assert told["status"] == "failed"
    assert told["first_audio_at_ms"] is None


def test_a_context_of_the_text_stream_names_its_request(
    client: httpx.Client, humming: Serving
) -> None:
    with connect(f"{humming.websocket_url}/v1/audio/speech/stream") as socket:
        assert json.loads(socket.recv())["type"] == "session.created"
        socket.send(json.dumps({"type": "context.create", "context_id": "a"}))
        created = json.loads(socket.recv())
        socket.send(json.dumps({"type": "text.append", "context_id": "a", "text": "one two"}))
        socket.send(json.dumps({"type": "text.done", "context_id": "a"}))
        while (event := json.loads(socket.recv()))["type"] != "context.done":
            pass
    told = _ended(client, created["request_id"])
    assert (told["endpoint"], told["status"]) == ("text_stream", "completed")
    assert event["context_id"] == "a"


def test_others_do_not_see_it() -> None:
    with (
        serving(api_keys="first,second") as running,
        httpx.Client(base_url=running.base_url, timeout=20) as client,
    ):
        first = {"Authorization": "Bearer first"}
        response = client.post("/v1/audio/speech", json=BODY, headers=first)
        path = f"/v1/requests/{response.headers['X-Request-Id']}/timeline"
        assert client.get(path, headers=first).status_code == 200
        assert client.get(path, headers={"Authorization": "Bearer second"}).status_code == 404
        assert client.get(path).status_code == 401


def test_only_the_last_ones_are_kept() -> None:
    with (
        serving(timeline_requests=2) as running,
        httpx.Client(base_url=running.base_url, timeout=20) as client,
    ):
        names = [
            client.post("/v1/audio/speech", json=BODY).headers["X-Request-Id"] for _ in range(3)
        ]
        found = [client.get(f"/v1/requests/{name}/timeline") for name in names]
    assert [one.status_code for one in found] == [404, 200, 200]
    error = found[0].json()["error"]
    assert error["code"] == "request_not_found"
    assert names[0] in error["message"]


def test_a_client_that_is_too_slow_is_named_so_in_the_engine() -> None:
    engine = HummingEngine()
    limits = {"slow_client_seconds": 0.3, "socket_send_buffer_bytes": 8192}
    with (
        serving(engine, write_buffer_bytes=8192, **limits) as running,
        httpx.Client(base_url=running.base_url, timeout=20) as client,
    ):
        body = {**BODY, "input": "x " * 2000}
        with client.stream("POST", "/v1/audio/speech", json=body) as response:
            request_id = response.headers["X-Request-Id"]
            assert until(lambda: bool(engine.aborted))
            assert until(lambda: not engine.live)
            assert engine.aborted == [(request_id, "slow_client")]
        told = _ended(client, request_id)
    assert told["status"] == "slow_client"
    assert float(str(told["send_blocked_ms"])) > 200


class Collected:
    """A tracer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[RequestRecord] = []
        self.closed = False

    def trace(self, record: RequestRecord) -> None:
        self.told.append(record)

    def close(self) -> None:
        self.closed = True


@pytest.mark.asyncio
async def test_each_end_is_told_once_also_where_nothing_is_kept() -> None:
    tracer = Collected()
    timelines = Timelines(0, tracer)
    request = OmniRequest("a", TextInput.whole("x"))
    trace = TraceContext("00-" + "1" * 32 + "-" + "2" * 16 + "-01")
    record = timelines.open(request, Endpoint.CHAT, trace=trace)
    assert timelines.find("a", "") is None
    timelines.close(record, "completed")
    timelines.close(record, "failed")
    assert tracer.told == [record]
    assert (record.outcome, record.trace) == ("completed", trace)
    timelines.shut_down()
    assert tracer.closed
