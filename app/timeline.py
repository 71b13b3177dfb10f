"""Where each request's time went, kept for a while so that clients can ask and traces can tell.

The engine notes its part in the request's `times`; what happens around it is noted here. Moments
are seconds on `time.monotonic`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from engine import OmniRequest, RequestTimes, StageTimes


class Endpoint(StrEnum):
    """Where a request came in."""

    SPEECH = "speech"
    TEXT_STREAM = "text_stream"
    CHAT = "chat"
    REALTIME = "realtime"


RUNNING = "running"


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The W3C trace context that a client sent along; empty without one.

    Attributes:
        traceparent: The header of this name.
        tracestate: The header of this name.
    """

    traceparent: str = ""
    tracestate: str = ""


@dataclass(slots=True)
class RequestRecord:
    """One request, as far as times go.

    Attributes:
        request_id: Its name, which clients know.
        endpoint: Where it came in.
        tenant: Whose it is.
        received: When it came.
        times: What the engine notes.
        trace: What its client said of a trace that it belongs to.
        received_at: The same as `received`, as Unix time.
        encode: Seconds that its sound took to be encoded, the wait for a thread included.
        blocked: Seconds that its client let the server wait.
        first_sent: When its first sound was handed to the connection.
        ended: When it was over for its client.
        outcome: How it ended.
    """

    request_id: str
    endpoint: Endpoint
    tenant: str
    received: float
    times: RequestTimes
    trace: TraceContext = TraceContext()
    received_at: float = field(default_factory=time.time)
    encode: float = 0.0
    blocked: float = 0.0
    first_sent: float | None = None
    ended: float | None = None
    outcome: str = RUNNING

    @contextmanager
    def encoding(self) -> Generator[None]:
        """Counts the time of the block as that of encoding."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.encode += time.monotonic() - began

    def sent(self) -> None:
        """Sound was handed to the connection; the first time counts."""
        if self.first_sent is None:
            self.first_sent = time.monotonic()

    def as_json(self) -> dict[str, Any]:
        """The timeline: moments (`…_at_ms`) from the arrival on and durations (`…_ms`)."""
        times = self.times
        return {
            "object": "request.timeline",
            "id": self.request_id,
            "endpoint": self.endpoint.value,
            "status": self.outcome,
            "received_at": round(self.received_at, 3),
            "admitted_at_ms": self._at(times.admitted),
            "opened_at_ms": self._at(times.opened),
            "first_audio_at_ms": self._at(times.first_audio),
            "first_sent_at_ms": self._at(self.first_sent),
            "engine_ended_at_ms": self._at(times.ended),
            "ended_at_ms": self._at(self.ended),
            "encode_ms": _milliseconds(self.encode),
            "send_blocked_ms": _milliseconds(self.blocked),
            "audio_seconds": round(times.audio_seconds, 4),
            "underruns": times.underruns,
            "stages": [self._stage(name, stage) for name, stage in list(times.stages.items())],
        }

    def _stage(self, name: str, stage: StageTimes) -> dict[str, Any]:
        return {
            "stage": name,
            "first_input_at_ms": self._at(stage.first_input),
            "first_step_at_ms": self._at(stage.first_step),
            "first_output_at_ms": self._at(stage.first_output),
            "ended_at_ms": self._at(stage.ended),
            "queue_ms": _milliseconds(stage.queue),
            "compute_ms": _milliseconds(stage.compute),
            "transfer_ms": _milliseconds(stage.transfer or 0.0),
            "starved_ms": _milliseconds(stage.starved),
            "held_ms": _milliseconds(stage.held),
            "waited_ms": _milliseconds(stage.waited),
            "steps": stage.steps,
        }

    def _at(self, moment: float | None) -> float | None:
        return None if moment is None else _milliseconds(moment - self.received)


def _milliseconds(seconds: float) -> float:
    return round(1000 * seconds, 2)


class Tracer(Protocol):
    """Where traces go."""

    def trace(self, record: RequestRecord) -> None:
        """Tells of a request that is over; must not wait."""
        ...

    def close(self) -> None:
        """Sends what is left; may wait."""
        ...


class Timelines:
    """The last requests' records, the running ones among them."""

    def __init__(self, most: int, tracer: Tracer | None = None) -> None:
        """Keeps at most `most` records; the oldest goes first."""
        self._most = most
        self._tracer = tracer
        self._records: OrderedDict[str, RequestRecord] = OrderedDict()

    def open(
        self,
        request: OmniRequest,
        endpoint: Endpoint,
        *,
        received: float | None = None,
        trace: TraceContext | None = None,
    ) -> RequestRecord:
        """Begins a request's record.

        Args:
            request: What the engine is asked.
            endpoint: Where it came in.
            received: When; None means now.
            trace: The trace that it belongs to.
        """
        now = time.monotonic()
        came = now if received is None else received
        record = RequestRecord(
            request.request_id,
            endpoint,
            request.tenant,
            came,
            request.times,
            trace or TraceContext(),
            received_at=time.time() - (now - came),
        )
        if self._most > 0:
            self._records[record.request_id] = record
            while len(self._records) > self._most:
                self._records.popitem(last=False)
        return record

    def close(self, record: RequestRecord, outcome: str) -> None:
        """Ends a request's record; only the first end counts."""
        if record.ended is not None:
            return
        record.ended = time.monotonic()
        record.outcome = outcome
        if self._tracer is not None:
            self._tracer.trace(record)

    def find(self, request_id: str, tenant: str) -> RequestRecord | None:
        """A tenant's record, if it is still kept."""
        record = self._records.get(request_id)
        return None if record is None or record.tenant != tenant else record

    def shut_down(self) -> None:
        """Sends what is left of the traces; may wait."""
        if self._tracer is not None:
            self._tracer.close()
