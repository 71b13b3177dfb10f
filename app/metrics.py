"""What this layer measures; `/metrics` shows it beside the engine's own figures."""

from __future__ import annotations

from enum import StrEnum

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from engine import ErrorCode

_FIRST_AUDIO_BUCKETS = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0)
_LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Transport(StrEnum):
    """How a client gets its audio."""

    AUDIO = "audio"
    WHOLE = "whole"
    EVENTS = "sse"
    WEBSOCKET = "websocket"


class Outcome(StrEnum):
    """How a request for speech ended."""

    COMPLETED = "completed"
    REFUSED = "refused"
    """The request was wrong."""
    OVERLOADED = "overloaded"
    CANCELLED = "cancelled"
    """The client asked for the end."""
    DISCONNECTED = "disconnected"
    """The client went away."""
    SLOW_CLIENT = "slow_client"
    DEADLINE = "deadline"
    SHUTDOWN = "shutdown"
    FAILED = "failed"

    @staticmethod
    def of_error(code: ErrorCode) -> Outcome:
        """The outcome that stands for an engine error."""
        return _OUTCOME_OF_CODE.get(code, Outcome.FAILED)


_OUTCOME_OF_CODE = {
    ErrorCode.INVALID_REQUEST: Outcome.REFUSED,
    ErrorCode.OVERLOADED: Outcome.OVERLOADED,
    ErrorCode.DEADLINE_EXCEEDED: Outcome.DEADLINE,
    ErrorCode.SLOW_CLIENT: Outcome.SLOW_CLIENT,
    ErrorCode.CANCELLED: Outcome.CANCELLED,
    ErrorCode.SHUTTING_DOWN: Outcome.SHUTDOWN,
}


class AppMetrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        """Registers them in a registry of their own."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "antiphon_speech_requests",
            "Requests for speech that ended, by how.",
            ["transport", "outcome"],
            registry=self.registry,
        )
        self.active = Gauge(
            "antiphon_speech_active",
            "Requests for speech that are being answered.",
            ["transport"],
            registry=self.registry,
        )
        self.first_audio = Histogram(
            "antiphon_first_audio_seconds",
            "From the arrival of a request to the first bytes of its audio.",
            ["transport"],
            buckets=_FIRST_AUDIO_BUCKETS,
            registry=self.registry,
        )
        self.audio_seconds = Counter(
            "antiphon_audio_sent_seconds",
            "Seconds of audio handed to clients.",
            ["transport"],
            registry=self.registry,
        )
        self.websockets = Gauge(
            "antiphon_websocket_connections",
            "Open text-in WebSockets.",
            registry=self.registry,
        )
        self.loop_lag = Histogram(
            "antiphon_event_loop_lag_seconds",
            "How much later than planned the event loop got round to a timer.",
            buckets=_LAG_BUCKETS,
            registry=self.registry,
        )

    def render(self, engine_registry: CollectorRegistry | None) -> bytes:
        """All metrics in Prometheus' text format."""
        text = generate_latest(self.registry)
        if engine_registry is not None:
            text += generate_latest(engine_registry)
        return text
