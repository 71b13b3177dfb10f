"""What the engine measures, as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.chunk import AudioPayload
from engine.errors import ErrorCode
from engine.live_request import LiveRequest

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


class EngineMetrics:
    """All metrics of one engine, in its own registry.

    Attributes:
        registry: What `/metrics` prints.
    """

    def __init__(self) -> None:
        """Registers every metric."""
        self.registry = registry = CollectorRegistry()
        self.step_seconds = Histogram(
            "antiphon_stage_step_seconds",
            "Time of one step of a stage.",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "antiphon_stage_batch_size",
            "Requests in one step of a stage.",
            ["stage"],
            buckets=BATCHES,
            registry=registry,
        )
        self.credit_stall = Counter(
            "antiphon_stage_credit_stall_seconds",
            "Time that requests were held for lack of credit.",
            ["stage"],
            registry=registry,
        )
        self.restarts = Counter(
            "antiphon_stage_restarts", "Replicas that were replaced.", ["stage"], registry=registry
        )
        self.first_audio = Histogram(
            "antiphon_time_to_first_audio_seconds",
            "From submission to the first audio of a request.",
            buckets=SECONDS,
            registry=registry,
        )
        self.real_time_factor = Histogram(
            "antiphon_real_time_factor",
            "Time from submission to the end, divided by the audio's length.",
            buckets=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 3.0),
            registry=registry,
        )
        self.audio_seconds = Counter(
            "antiphon_audio_seconds", "Audio that was made.", registry=registry
        )
        self.underruns = Counter(
            "antiphon_underruns",
            "Times that a simulated player, started with the first chunk, ran dry.",
            registry=registry,
        )
        self.underrun_seconds = Counter(
            "antiphon_underrun_seconds", "Time that it was dry.", registry=registry
        )
        self.finished = Counter(
            "antiphon_requests_finished", "Ended requests by reason.", ["reason"], registry=registry
        )
        self.cancel_seconds = Histogram(
            "antiphon_cancel_seconds",
            "Time to take a request out of every stage.",
            buckets=SECONDS,
            registry=registry,
        )
        self.admission_wait = Histogram(
            "antiphon_admission_wait_seconds",
            "Time from arrival to the start of work.",
            buckets=SECONDS,
            registry=registry,
        )

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Adds a gauge whose value is read when it is asked for."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def note_step(self, stage: str, seconds: float, batch: int) -> None:
        """One step of a stage is done."""
        self.step_seconds.labels(stage).observe(seconds)
        self.batch_size.labels(stage).observe(batch)

    def note_credit(self, live: LiveRequest, stage: str, credit: bool, now: float) -> None:
        """A stage's credit for a request is known; the time without it is counted."""
        if not credit:
            live.stalled_since.setdefault(stage, now)
            return
        since = live.stalled_since.pop(stage, None)
        if since is not None:
            self.credit_stall.labels(stage).inc(now - since)

    def note_delivery(self, live: LiveRequest, payload: Any | None, first: bool) -> None:
        """A chunk was sent on."""
        if not isinstance(payload, AudioPayload):
            return
        self.audio_seconds.inc(payload.seconds)
        listener = live.listener
        if first and listener.first_audio is not None:
            self.first_audio.observe(listener.first_audio - listener.started)

    def note_end(self, live: LiveRequest, code: ErrorCode | None, now: float) -> None:
        """A request has ended."""
        self.finished.labels("done" if code is None else code.value).inc()
        listener = live.listener
        self.underruns.inc(listener.underruns)
        self.underrun_seconds.inc(listener.silence)
        if code is None and listener.delivered > 0:
            self.real_time_factor.observe((now - listener.started) / listener.delivered)
