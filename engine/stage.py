"""StageRuntime: one logical stage made live, with its replicas, readiness and restarts."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.chunk_policy import MovingAverage
from engine.faults import STAGE_FAULTS
from engine.request import SpeechParameters, StageStatus

logger = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 60.0
"""A replica that cannot be built is tried again after a pause that doubles up to this."""


class ReplicaOutput(Protocol):
    """What a replica's step gave one request."""

    @property
    def request_id(self) -> str:
        """Whose it is."""

    @property
    def output(self) -> Any | None:
        """The payload, if there is one."""

    @property
    def finished(self) -> bool:
        """Whether it is the request's last."""


class Replica(Protocol):
    """One copy of a stage. It computes; it never decides where output goes (invariant 3)."""

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request."""

    def wants_input(self, request_id: str) -> bool:
        """Whether more input should be given before the next step."""

    def offer(self, request_id: str, payload: Any) -> None:
        """Queues input of a request."""

    def close_input(self, request_id: str) -> None:
        """Ends a request's input."""

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        """Says whether a request's output may grow."""

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        """Requests that would take part in a step now."""

    @property
    def needs_cleaning(self) -> bool:
        """Whether a step is needed to let go of aborted requests."""

    def step(self, slacks: Mapping[str, float]) -> list[Any]:
        """Runs one step; the outputs are `ReplicaOutput`s."""

    def abort(self, request_id: str) -> None:
        """Lets go of a request at once; idempotent."""

    def close(self) -> None:
        """Frees everything."""


@dataclass(slots=True)
class ReplicaSlot:
    """A place for a replica, which outlives the replica in it.

    Attributes:
        index: Which copy it is.
        replica: The live replica, or None while there is none.
        requests: Requests that are placed here.
        failed_builds: Builds in a row that failed.
        retry_at: When the next build is due, on the monotonic clock, after one that failed.
        idle: Requests that could not take part in a step when that was last looked at.
        ready: How many could.
    """

    index: int
    replica: Replica | None = None
    requests: set[str] = field(default_factory=set)
    failed_builds: int = 0
    retry_at: float | None = None
    idle: set[str] = field(default_factory=set)
    ready: int = 0


@dataclass(slots=True)
class StageRuntime:
    """One logical stage.

    Attributes:
        name: The stage's name.
        build: Loads one replica.
        slots: The replicas' places.
        status: The stage's state.
        step_seconds: Mean time of a step.
    """

    name: str
    build: Callable[[], Replica]
    slots: list[ReplicaSlot]
    status: StageStatus = StageStatus.STARTING
    step_seconds: MovingAverage = field(default_factory=lambda: MovingAverage(0.01))
    _placed: dict[str, ReplicaSlot] = field(default_factory=dict)

    @property
    def ready(self) -> int:
        """How many requests could take part in the next steps, when that was last looked at."""
        return sum(slot.ready for slot in self.slots)

    @property
    def requests(self) -> int:
        """How many requests are placed here."""
        return len(self._placed)

    def start(self) -> None:
        """Builds every replica."""
        for slot in self.slots:
            slot.replica = self.build()
        self.status = StageStatus.READY

    def least_busy(self) -> ReplicaSlot | None:
        """The live replica with the fewest requests; None: none lives."""
        live = [slot for slot in self.slots if slot.replica is not None]
        return min(live, key=lambda slot: len(slot.requests), default=None)

    def place(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request on the live replica with the fewest requests.

        Raises:
            RuntimeError: No replica lives.
        """
        slot = self.least_busy()
        if slot is None or slot.replica is None:
            raise RuntimeError(f"Stage {self.name!r} has no live replica.")
        slot.replica.add(request_id, parameters)
        slot.requests.add(request_id)
        self._placed[request_id] = slot

    def replica_of(self, request_id: str) -> Replica | None:
        """The replica that works on a request, if it still does."""
        slot = self._placed.get(request_id)
        return None if slot is None else slot.replica

    def finished(self, request_id: str) -> None:
        """Forgets where a request was placed; idempotent."""
        slot = self._placed.pop(request_id, None)
        if slot is not None:
            slot.requests.discard(request_id)

    def abort(self, request_id: str) -> None:
        """Takes a request out of its replica; idempotent."""
        replica = self.replica_of(request_id)
        try:
            if replica is not None:
                replica.abort(request_id)
        except STAGE_FAULTS:
            # The request ends all the same; if the replica is broken, its next step will tell.
            logger.exception("Stage %s could not let go of %s.", self.name, request_id)
        finally:
            self.finished(request_id)

    def step(self, slot: ReplicaSlot, slacks: Mapping[str, float]) -> list[Any]:
        """One step of one replica, timed."""
        if slot.replica is None:
            return []
        started = time.perf_counter()
        outputs = slot.replica.step(slacks)
        self.step_seconds.add(time.perf_counter() - started)
        return outputs

    def bury(self, slot: ReplicaSlot) -> list[str]:
        """Gives a broken replica up.

        Returns:
            The requests that were on it.
        """
        lost = sorted(slot.requests)
        for request_id in lost:
            self.finished(request_id)
        # It is not closed: closing an engine core takes what others of the process still use.
        slot.replica = None
        slot.idle, slot.ready = set(), 0
        self.status = StageStatus.RESTARTING
        return lost

    def revive(self, slot: ReplicaSlot, now: float) -> bool:
        """Builds a new replica in a slot; where that fails, `retry_at` says when to try again."""
        # An engine core freezes what it allocates; the broken one's memory is wanted back.
        gc.unfreeze()
        gc.collect()
        try:
            slot.replica = self.build()
        except STAGE_FAULTS:
            pause = min(FIRST_RETRY_SECONDS * 2**slot.failed_builds, LONGEST_RETRY_SECONDS)
            logger.exception("A replica of %s cannot be built; again in %g s.", self.name, pause)
            slot.failed_builds += 1
            slot.retry_at = now + pause
        else:
            slot.failed_builds = 0
            slot.retry_at = None
        alive = any(other.replica is not None for other in self.slots)
        self.status = StageStatus.READY if alive else StageStatus.FAILED
        return slot.replica is not None

    def close(self) -> None:
        """Frees every replica; idempotent."""
        for slot in self.slots:
            if slot.replica is not None:
                slot.replica.close()
                slot.replica = None
            slot.retry_at = None
        self._placed.clear()
        self.status = StageStatus.CLOSED
