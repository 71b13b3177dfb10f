"""One trace a request, sent to an OpenTelemetry collector.

The spans are made when a request is over, of the times that were kept meanwhile; so tracing costs
the streaming path nothing. Importing this module loads the OpenTelemetry SDK: only do so when
traces are wanted.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from app.timeline import RequestRecord
from engine import StageTimes

TRACES_PATH = "/v1/traces"


class OpenTelemetryTracer:
    """Makes spans of records and hands them to an exporter, in batches, on a thread of its own."""

    def __init__(self, exporter: SpanExporter, *, version: str, pipeline: str) -> None:
        """Begins.

        Args:
            exporter: What sends spans.
            version: Of this server.
            pipeline: What speaks.
        """
        resource = Resource.create(
            {SERVICE_NAME: "antiphon", SERVICE_VERSION: version, "antiphon.pipeline": pipeline}
        )
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("antiphon", version)

    @classmethod
    def to_collector(cls, endpoint: str, *, version: str, pipeline: str) -> OpenTelemetryTracer:
        """Sends to a collector over OTLP and HTTP; an address without a path gets `/v1/traces`."""
        if urlsplit(endpoint).path in ("", "/"):
            endpoint = endpoint.rstrip("/") + TRACES_PATH
        exporter = OTLPSpanExporter(endpoint=endpoint)
        return cls(exporter, version=version, pipeline=pipeline)

    def trace(self, record: RequestRecord) -> None:
        """Makes the spans of a request that is over."""
        offset = time.time() - time.monotonic()
        _Trace(self, record, offset).tell()

    def close(self) -> None:
        """Sends what is left; waits for the collector for some seconds at most."""
        self._provider.shutdown()

    def span(
        self,
        name: str,
        start: int,
        end: int,
        attributes: dict[str, AttributeValue],
        parent: Context | None,
        *,
        failure: str | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Context:
        """One span, in nanoseconds of Unix time; returns the context of its children."""
        span = self._tracer.start_span(name, parent, kind, attributes, start_time=start)
        if failure is not None:
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end(end)
        return set_span_in_context(span, parent)


class _Trace:
    """The spans of one request."""

    def __init__(self, tracer: OpenTelemetryTracer, record: RequestRecord, offset: float) -> None:
        self._tracer = tracer
        self._record = record
        self._offset = offset
        self._parent: Context | None = None

    def tell(self) -> None:
        record, times = self._record, self._record.times
        carrier = {"traceparent": record.trace.traceparent, "tracestate": record.trace.tracestate}
        headers = {name: value for name, value in carrier.items() if value}
        caller = TraceContextTextMapPropagator().extract(headers)
        ended = record.received if record.ended is None else record.ended
        self._parent = self._tracer.span(
            record.endpoint.value,
            self._at(record.received),
            self._at(ended),
            {
                "antiphon.request_id": record.request_id,
                "antiphon.outcome": record.outcome,
                "antiphon.audio_seconds": times.audio_seconds,
                "antiphon.underruns": times.underruns,
            },
            caller,
            failure=None if times.error is None else times.error.value,
            kind=SpanKind.SERVER,
        )
        self._child("admission", times.arrived, times.admitted or times.ended)
        for name, stage in times.stages.items():
            self._child(f"stage.{name}", stage.first_input, stage.ended, _attributes(stage))
        self._child("first_audio", record.received, times.first_audio)
        sending: dict[str, AttributeValue] = {
            "antiphon.encode_seconds": record.encode,
            "antiphon.send_blocked_seconds": record.blocked,
        }
        self._child("send", times.first_audio, record.ended, sending)

    def _child(
        self,
        name: str,
        start: float | None,
        end: float | None,
        attributes: dict[str, AttributeValue] | None = None,
    ) -> None:
        if start is not None and end is not None:
            self._tracer.span(name, self._at(start), self._at(end), attributes or {}, self._parent)

    def _at(self, moment: float) -> int:
        return int((moment + self._offset) * 1e9)


def _attributes(stage: StageTimes) -> dict[str, AttributeValue]:
    return {
        "antiphon.queue_seconds": stage.queue,
        "antiphon.compute_seconds": stage.compute,
        "antiphon.transfer_seconds": stage.transfer or 0.0,
        "antiphon.starved_seconds": stage.starved,
        "antiphon.held_seconds": stage.held,
        "antiphon.waited_seconds": stage.waited,
        "antiphon.steps": stage.steps,
    }
