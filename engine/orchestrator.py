"""The control plane: what moves between stages, for whom, and which stage works next.

It runs on the engine thread only. It routes by the pipeline's topology, passes credits, priority
and cancellation down, and never looks into a stage's own scheduling.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.abort import MESSAGES, AbortReason, cause_of
from engine.chunk_policy import LOW_SLACK
from engine.connector import OmniConnector
from engine.errors import EngineClosedError, EngineError, ErrorCode, InvalidRequestError, StageError
from engine.faults import STAGE_FAULTS
from engine.live_request import LiveRequest, Submission, open_request
from engine.metrics import EngineMetrics
from engine.pipeline_config import Models, PipelineConfig
from engine.stage import ReplicaSlot, StageRuntime

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which replica works next, and for whom: `ready` would take part in its step."""

    runtime: StageRuntime
    slot: ReplicaSlot
    urgency: float
    slacks: dict[str, float]
    ready: list[str]


@dataclass(slots=True)
class Orchestrator:
    """The cross-stage state of every live request.

    Attributes:
        pipeline: The topology.
        models: The folders of the stages' models.
        runtimes: The live stages, upstream first.
        connector: The data plane.
        metrics: What is measured.
        clock: A monotonic clock in seconds.
    """

    pipeline: PipelineConfig
    models: Models
    runtimes: list[StageRuntime]
    connector: OmniConnector
    metrics: EngineMetrics
    clock: Callable[[], float]
    live: dict[str, LiveRequest] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, LiveRequest] = field(default_factory=dict)
    closed: bool = False

    def submit(self, submission: Submission) -> LiveRequest:
        """Opens a request; an older one of the same session is fenced and cancelled first.

        Raises:
            ValueError: A request with this identifier is live.
            EngineClosedError: The engine takes no more requests.
            EngineError: An adapter of the request cannot be made.
        """
        if self.closed:
            raise EngineClosedError
        if submission.request_id in self.live:
            raise ValueError(f"A request {submission.request_id!r} is live already.")
        epoch = self._next_epoch(submission.session)
        try:
            live = open_request(
                self.pipeline, self.models, self.connector, submission, epoch, self.clock()
            )
        except InvalidRequestError:
            raise
        except STAGE_FAULTS as fault:
            logger.exception("The adapters of %s could not be made.", submission.request_id)
            error = StageError(ErrorCode.STAGE_FAILED, f"The request could not be opened: {fault}")
            raise EngineError(error) from fault
        self.live[submission.request_id] = live
        if submission.session is not None:
            self.sessions[submission.session] = live
        for runtime in self.runtimes:
            if runtime.name not in live.unfinished:
                continue
            try:
                runtime.place(submission.request_id, submission.parameters)
            except STAGE_FAULTS as fault:
                self._fault(live, fault, runtime.name)
                break
        return live

    def _next_epoch(self, session: str | None) -> int:
        if session is None:
            return 0
        self.fence(session)
        self.epochs[session] = self.epochs.get(session, -1) + 1
        return self.epochs[session]

    def fence(self, session: str, reason: AbortReason = AbortReason.REPLACED) -> None:
        """Ends a session's request; what it made and nobody has read is gone (invariant 7).

        Idempotent. The session's next request has a newer epoch.
        """
        older = self.sessions.pop(session, None)
        if older is None:
            return
        self.cancel(older.request_id, reason)
        # One that was done already may have chunks in the client's edge still.
        older.fail(StageError(ErrorCode.CANCELLED, MESSAGES[reason]))

    def end_session(self, session: str) -> None:
        """Cancels a session's live request and forgets its epoch; idempotent."""
        self.fence(session, AbortReason.SESSION_ENDED)
        self.epochs.pop(session, None)

    def add_input(self, request_id: str, payloads: Sequence[Any], closed: bool) -> None:
        """Takes input of a live request in; that of an ended one is dropped."""
        live = self.live.get(request_id)
        if live is not None:
            live.add_input(payloads, closed, self.clock())

    def cancel(self, request_id: str, reason: AbortReason, asked: float | None = None) -> None:
        """Takes a request out of every queue, batch and KV block, at once; idempotent.

        Args:
            request_id: Which.
            reason: Why.
            asked: When that was wished for, on the monotonic clock; None means now.
        """
        live = self.live.get(request_id)
        if live is not None:
            error = StageError(reason.code, MESSAGES[reason])
            self._fail(live, error, reason, self.clock() if asked is None else asked)

    def expire(self, now: float) -> None:
        """Does what is due: ends requests whose deadline has passed, tries dead replicas again."""
        for live in list(self.live.values()):
            if live.submission.deadline_at <= now:
                reason = AbortReason.DEADLINE_EXCEEDED
                self.cancel(live.request_id, reason, live.submission.deadline_at)
        for runtime in self.runtimes:
            for slot in runtime.slots:
                if slot.retry_at is not None and slot.retry_at <= now:
                    self._revive(runtime, slot)

    def next_deadline(self) -> float | None:
        """When something is due next, on the monotonic clock; None: nothing is."""
        now = self.clock()
        due = [live.submission.deadline_at for live in self.live.values()]
        for live in self.live.values():
            low = live.listener.runs_low_at(LOW_SLACK)
            if low is not None and low > now:
                due.append(low)
        for runtime in self.runtimes:
            due += [slot.retry_at for slot in runtime.slots if slot.retry_at is not None]
        return min(due, default=None)

    def pump(self) -> None:
        """Moves what has arrived into the stages that want it, and passes credits down."""
        now = self.clock()
        for live in list(self.live.values()):
            live.drop_unwanted(now)
            for runtime in self.runtimes:
                replica = runtime.replica_of(live.request_id)
                if replica is None or runtime.name not in live.unfinished:
                    continue
                try:
                    live.pump(runtime.name, replica, now)
                except STAGE_FAULTS as fault:
                    self._fault(live, fault, runtime.name)
                    break
                credit = live.has_credit(runtime.name)
                replica.set_credit(live.request_id, credit)
                self.metrics.note_credit(live, runtime.name, credit, now)

    def relieve(self) -> bool:
        """When all are idle: lets requests whose input stalls speak what they hold back.

        Returns:
            Whether there may be work now.
        """
        now = self.clock()
        hurried = False
        for live in list(self.live.values()):
            low = live.listener.runs_low_at(LOW_SLACK)
            if low is None or low > now:
                continue
            try:
                hurried = live.hurry() or hurried
            except STAGE_FAULTS as fault:
                self._fault(live, fault, None)
        return hurried

    def choose(self) -> Choice | None:
        """The replica whose most urgent listener is closest to an underrun; None: all idle.

        Between equals the stage further downstream goes first: it is nearer to the listener.
        """
        now = self.clock()
        slacks = {request_id: live.listener.slack(now) for request_id, live in self.live.items()}
        best: Choice | None = None
        for runtime in self.runtimes:
            for slot in runtime.slots:
                if slot.replica is None:
                    continue
                ready = slot.replica.ready(slacks)
                self.metrics.note_ready(runtime.name, slot, ready, self.live, now)
                if not ready and not slot.replica.needs_cleaning:
                    continue
                urgency = min((slacks[request_id] for request_id in ready), default=float("inf"))
                if best is None or urgency <= best.urgency:
                    best = Choice(runtime, slot, urgency, slacks, ready)
        return best

    def execute(self, choice: Choice) -> None:
        """Runs one step and sends its outputs on; a fault ends the replica, not the server."""
        now = self.clock()
        runtime, slot = choice.runtime, choice.slot
        failure: str | None = None
        try:
            outputs = runtime.step(slot, choice.slacks)
        except STAGE_FAULTS as fault:
            logger.exception("A replica of stage %s failed.", runtime.name)
            failure = str(fault)
        if failure is not None:
            # Not while the exception is handled: its traceback holds the broken replica.
            self._replace_replica(runtime, slot, failure)
            return
        after = self.clock()
        self.metrics.note_step(runtime.name, after - now, len(outputs))
        for request_id in {*choice.ready, *(output.request_id for output in outputs)}:
            if request_id in self.live:
                self.live[request_id].times.stages[runtime.name].step(now, after)
        for output in outputs:
            live = self.live.get(output.request_id)
            if live is None:
                continue
            if output.finished:
                runtime.finished(output.request_id)
                self.metrics.note_stage_end(live, runtime.name, after)
            first = live.listener.first_audio is None
            try:
                live.deliver(runtime.name, output.output, output.finished, after)
            except STAGE_FAULTS as fault:
                self._fault(live, fault, runtime.name)
                continue
            self.metrics.note_delivery(live, output.output, first)
            if not live.unfinished:
                self._complete(live)

    def _complete(self, live: LiveRequest) -> None:
        now = self.clock()
        live.end(now, None)
        self.metrics.note_end(live, None, now)
        live.release()
        self.live.pop(live.request_id, None)

    def _fault(self, live: LiveRequest, fault: Exception | str, stage: str | None) -> None:
        """Ends a request for what an adapter or a stage raised: its client's mistake, or ours."""
        error, reason = cause_of(fault, stage)
        if isinstance(fault, Exception) and reason is AbortReason.STAGE_FAILED:
            logger.error("Request %s failed at stage %s.", live.request_id, stage, exc_info=fault)
        self._fail(live, error, reason, self.clock())

    def _fail(
        self, live: LiveRequest, error: StageError, reason: AbortReason, asked: float
    ) -> None:
        for runtime in self.runtimes:
            runtime.abort(live.request_id)
        now = self.clock()
        live.end(now, error.code)
        self.metrics.note_end(live, error.code, now)
        self.metrics.note_abort(reason, now - asked)
        live.fail(error)
        live.release()
        self.live.pop(live.request_id, None)

    def _replace_replica(self, runtime: StageRuntime, slot: ReplicaSlot, reason: str) -> None:
        for request_id in runtime.bury(slot):
            live = self.live.get(request_id)
            if live is not None:
                self._fault(live, f"Stage {runtime.name} failed: {reason}", runtime.name)
        self._revive(runtime, slot)

    def _revive(self, runtime: StageRuntime, slot: ReplicaSlot) -> None:
        if runtime.revive(slot, self.clock()):
            self.metrics.restarts.labels(runtime.name).inc()

    def close(self) -> None:
        """Ends every live request and takes no more."""
        self.closed = True
        for request_id in list(self.live):
            self.cancel(request_id, AbortReason.SHUTTING_DOWN)
