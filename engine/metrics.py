"""What the engine measures, as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.abort import AbortReason
from engine.chunk import AudioPayload
from engine.errors import ErrorCode
from engine.live_request import LiveRequest
from engine.stage import ReplicaSlot

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


class EngineMetrics:
    """All metrics of one engine, in its own registry.

    Attributes:
        registry: What `/metrics` prints.
    """

    def __init__(self) -> None:
        """Registers every metric."""
        self.registry = CollectorRegistry()
        self._measure_stages()
        self._measure_requests()

    def _measure_stages(self) -> None:
        counter = partial(Counter, registry=self.registry, labelnames=["stage"])
        histogram = partial(
            Histogram, registry=self.registry, labelnames=["stage"], buckets=SECONDS
        )
        self.step_seconds = histogram("antiphon_stage_step_seconds", "Time of one step of a stage.")
        self.batch_size = histogram(
            "antiphon_stage_batch_size", "Requests in one step of a stage.", buckets=BATCHES
        )
        self.credit_stall = counter(
            "antiphon_stage_credit_stall_seconds",
            "Time that requests were held for lack of credit.",
        )
        self.input_stall = counter(
            "antiphon_stage_input_stall_seconds",
            "Time that requests were short of input, after their first.",
        )
        self.queue_seconds = histogram(
            "antiphon_stage_queue_seconds",
            "From input enough for a step to a request's first step at a stage.",
        )
        self.compute_seconds = histogram(
            "antiphon_stage_compute_seconds",
            "Time of a request's steps at a stage, which it shared with their batches.",
        )
        self.transfer_seconds = histogram(
            "antiphon_stage_transfer_seconds",
            "From sending a request's first chunk to a stage until it was taken.",
        )
        self.restarts = counter("antiphon_stage_restarts", "Replicas that were replaced.")

    def _measure_requests(self) -> None:
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry, buckets=SECONDS)
        self.encoded_ahead = counter(
            "antiphon_encodings_ahead",
            "Windows of sound that were encoded before their turn had ended.",
        )
        self.first_audio = histogram(
            "antiphon_time_to_first_audio_seconds",
            "From submission to the first audio of a request.",
        )
        self.real_time_factor = histogram(
            "antiphon_real_time_factor",
            "Time from submission to the end, divided by the audio's length.",
            buckets=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 3.0),
        )
        self.audio_seconds = counter("antiphon_audio_seconds", "Audio that was made.")
        self.underruns = counter(
            "antiphon_underruns",
            "Times that a simulated player, started with the first chunk, ran dry.",
        )
        self.underrun_seconds = counter("antiphon_underrun_seconds", "Time that it was dry.")
        self.finished = counter(
            "antiphon_requests_finished", "Ended requests by reason.", ["reason"]
        )
        self.aborted = counter(
            "antiphon_requests_aborted",
            "Requests that ended before they were done, by why.",
            ["reason"],
        )
        self.cancel_seconds = histogram(
            "antiphon_cancel_seconds",
            "From the wish to end a request until it was out of every stage.",
        )
        self.admission_wait = histogram(
            "antiphon_admission_wait_seconds", "Time from arrival to the start of work."
        )

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Adds a gauge whose value is read when it is asked for."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def stage_gauge(
        self, name: str, text: str, stages: Iterable[str], read: Callable[[str], float]
    ) -> None:
        """Adds a gauge with a value for each stage, read when it is asked for."""
        gauge = Gauge(name, text, ["stage"], registry=self.registry)
        for stage in stages:
            gauge.labels(stage).set_function(partial(read, stage))

    def note_step(self, stage: str, seconds: float, batch: int) -> None:
        """One step of a stage is done."""
        self.step_seconds.labels(stage).observe(seconds)
        self.batch_size.labels(stage).observe(batch)

    def note_credit(self, live: LiveRequest, stage: str, credit: bool, now: float) -> None:
        """A stage's credit for a request is known; the time without it is counted."""
        times = live.times.stages[stage]
        if not credit:
            times.hold(now)
        elif (held := times.release(now)) > 0.0:
            self.credit_stall.labels(stage).inc(held)

    def note_ready(
        self,
        stage: str,
        slot: ReplicaSlot,
        ready: list[str],
        live: Mapping[str, LiveRequest],
        now: float,
    ) -> None:
        """It is known who could take part in a replica's next step, and so who could not."""
        slot.ready = len(ready)
        idle = slot.requests.difference(ready)
        if idle == slot.idle:
            return
        for request_id in idle - slot.idle:
            if request_id in live:
                live[request_id].times.stages[stage].idle(now)
        for request_id in slot.idle - idle:
            if request_id in live:
                starved = live[request_id].times.stages[stage].wake(now)
                self.input_stall.labels(stage).inc(starved)
        slot.idle = idle

    def note_stage_end(self, live: LiveRequest, stage: str, now: float) -> None:
        """A stage is done with a request; only the first time counts."""
        times = live.times.stages[stage]
        if times.ended is not None:
            return
        held, starved = times.end(now)
        self.credit_stall.labels(stage).inc(held)
        self.input_stall.labels(stage).inc(starved)
        if times.first_step is not None:
            self.queue_seconds.labels(stage).observe(times.queue)
            self.compute_seconds.labels(stage).observe(times.compute)
        if times.transfer is not None:
            self.transfer_seconds.labels(stage).observe(times.transfer)

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
        for stage in live.times.stages:
            self.note_stage_end(live, stage, now)
        self.finished.labels("done" if code is None else code.value).inc()
        listener = live.listener
        self.underruns.inc(listener.underruns)
        self.underrun_seconds.inc(listener.silence)
        if code is None and listener.delivered > 0:
            self.real_time_factor.observe((now - listener.started) / listener.delivered)

    def note_abort(self, reason: AbortReason, seconds: float) -> None:
        """A request was ended before it was done, `seconds` after that was wished for."""
        self.aborted.labels(reason.value).inc()
        self.cancel_seconds.observe(seconds)

    def note_refusal(self, code: ErrorCode) -> None:
        """A request ended before the engine thread had it."""
        self.finished.labels(code.value).inc()
