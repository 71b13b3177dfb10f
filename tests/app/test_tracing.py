"""Spans, as a real collector endpoint gets them over OTLP and HTTP."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from websockets.sync.client import connect

from app.tracing import OpenTelemetryTracer
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import serving

BODY = {"model": "tts-1", "voice": "alloy", "input": "one two three", "response_format": "mp3"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Collector:
    """A collector that keeps every span."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: dict[str, str] = {}
        self.paths: set[str] = set()

    def take(self, path: str, body: bytes) -> None:
        self.paths.add(path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources = {
                pair.key: pair.value.string_value for pair in resource.resource.attributes
            }
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)


@pytest.fixture
def collector() -> Generator[tuple[Collector, str]]:
    """A collector and its address."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kept.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield kept, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join(5)
    server.server_close()


def _attributes(span: Span) -> dict[str, object]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }


def test_a_request_is_one_trace_that_goes_on_its_clients(
    collector: tuple[Collector, str],
) -> None:
    kept, address = collector
    with serving(otlp_endpoint=address) as running:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        response = httpx.post(f"{running.base_url}/v1/audio/speech", json=BODY, headers=headers)
        assert response.status_code == 200
        failed = {**BODY, "input": "FAIL"}
        assert httpx.post(f"{running.base_url}/v1/audio/speech", json=failed).status_code == 500
    assert kept.paths == {"/v1/traces"}
    assert kept.resources["service.name"] == "antiphon"
    spans = {span.name: span for span in kept.spans if span.trace_id.hex() == TRACE}
    assert set(spans) == {"speech", "admission", "stage.hum", "first_audio", "send"}
    root = spans.pop("speech")
    assert root.parent_span_id.hex() == PARENT
    assert root.kind == Span.SPAN_KIND_SERVER
    told = _attributes(root)
    assert told["antiphon.request_id"] == response.headers["X-Request-Id"]
    assert told["antiphon.outcome"] == "completed"
    assert told["antiphon.audio_seconds"] == pytest.approx(0.6)
    for span in spans.values():
        assert span.parent_span_id == root.span_id
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano + 1_000_000
    assert _attributes(spans["stage.hum"])["antiphon.steps"] == 4
    assert float(str(_attributes(spans["send"])["antiphon.encode_seconds"])) > 0
    others = [span for span in kept.spans if span.trace_id.hex() != TRACE]
    (broken,) = (span for span in others if span.name == "speech")
    assert broken.parent_span_id == b"", "a trace of its own"
    assert broken.status.message == "stage_failed"


def test_each_answer_of_a_conversation_belongs_to_its_sockets_trace(
    collector: tuple[Collector, str],
) -> None:
    kept, address = collector
    engine = RoteEngine()
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    with serving(engine, otlp_endpoint=address, ear=False) as running:  # type: ignore[arg-type]
        url = f"{running.websocket_url}/v1/realtime?model=rote"
        with connect(url, additional_headers=headers) as socket:
            socket.send(json.dumps({"type": "response.create"}))
            while (event := json.loads(socket.recv(10)))["type"] != "response.done":
                pass
    (root,) = (span for span in kept.spans if span.name == "realtime")
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    assert _attributes(root)["antiphon.request_id"] == event["response"]["id"]
    assert _attributes(root)["antiphon.outcome"] == "completed"


def test_a_parent_that_is_not_sampled_is_not_traced(collector: tuple[Collector, str]) -> None:
    kept, address = collector
    with serving(otlp_endpoint=address) as running:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
        httpx.post(f"{running.base_url}/v1/audio/speech", json=BODY, headers=headers)
    assert kept.spans == []


def test_an_address_with_a_path_is_taken_as_it_is(collector: tuple[Collector, str]) -> None:
    kept, address = collector
    with serving(otlp_endpoint=f"{address}/custom") as running:
        headers = {"traceparent": "nonsense"}
        httpx.post(f"{running.base_url}/v1/audio/speech", json=BODY, headers=headers)
    assert kept.paths == {"/custom"}
    assert kept.spans


def test_a_collector_that_is_away_disturbs_nobody() -> None:
    tracer = OpenTelemetryTracer.to_collector("http://127.0.0.1:9", version="1", pipeline="hum")
    with serving() as running:
        assert httpx.post(f"{running.base_url}/v1/audio/speech", json=BODY).status_code == 200
    tracer.close()
