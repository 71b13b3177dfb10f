"""Encodes what is being said before its turn has ended, where that delays nobody.

A pipeline whose Thinker hears names the stage that encodes sound. What of a sound is certain to
come is encoded there item by item between the steps of the stages, into the encoder's bounded
cache; the request that brings the whole sound finds it there, and encodes only the rest.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from engine.chunk_policy import LOW_SLACK, MovingAverage
from engine.faults import STAGE_FAULTS
from engine.stage import Replica, StageRuntime

if TYPE_CHECKING:
    from engine.multimodal import MediaItem

logger = logging.getLogger(__name__)


@runtime_checkable
class EncodingReplica(Protocol):
    """A replica with an encoder."""

    def encode(self, item: MediaItem) -> bool:
        """Encodes an item of a coming prompt; False: it was known, or there is no room for it."""


@dataclass(slots=True, eq=False)
class EncodingJob:
    """Items of one sound, to be encoded in order.

    Attributes:
        items: What is left.
        encoded: How many were encoded, and not known before.
        done: Set to `encoded` when none is left; whoever cancels it wants no more of them.
    """

    items: deque[MediaItem]
    encoded: int = 0
    done: Future[int] = field(default_factory=Future)


class EncodingAhead:
    """The jobs of all sessions; lives on the engine thread."""

    def __init__(self, runtime: StageRuntime | None, note: Callable[[], None]) -> None:
        """Waits for jobs.

        Args:
            runtime: The stage that encodes sound; None: none does.
            note: Called whenever an item was encoded.
        """
        self._runtime = runtime
        self._jobs: deque[EncodingJob] = deque()
        self._seconds = MovingAverage(0.05)
        self._note = note
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many items wait to be encoded."""
        return sum(len(job.items) for job in list(self._jobs))

    def add(self, job: EncodingJob) -> None:
        """Takes a job in."""
        if self._closed or not job.items:
            _finish(job)
        elif not job.done.cancelled():
            self._jobs.append(job)

    def withdraw(self, job: EncodingJob) -> None:
        """Forgets a job; idempotent."""
        if job in self._jobs:
            self._jobs.remove(job)

    def step(self, urgency: float) -> bool:
        """Encodes one item, if that fits into half of the time that the most urgent listener has.

        Sounds take turns, so that none waits for another's end.

        Args:
            urgency: Seconds until a listener would run dry; infinite if nobody listens.

        Returns:
            Whether anything was encoded.
        """
        if self._seconds.value > 0.5 * (urgency - LOW_SLACK):
            return False
        while self._jobs:
            job = self._jobs.popleft()
            if job.done.cancelled():
                continue
            encoded = self._encode(job)
            if job.items:
                self._jobs.append(job)
            else:
                _finish(job)
            if encoded:
                return True
        return False

    def _encode(self, job: EncodingJob) -> bool:
        replica = self._replica()
        if replica is None:
            job.items.clear()
            return False
        started = time.perf_counter()
        try:
            encoded = replica.encode(job.items.popleft())
        except STAGE_FAULTS:
            # Nothing depends on it. If the replica is broken, its next step will tell.
            logger.exception("A sound could not be encoded ahead.")
            job.items.clear()
            return False
        if encoded:
            self._seconds.add(time.perf_counter() - started)
            self._note()
            job.encoded += 1
        return encoded

    def _replica(self) -> EncodingReplica | None:
        """The replica that the next request would be placed on."""
        slot = None if self._runtime is None else self._runtime.least_busy()
        replica: Replica | None = None if slot is None else slot.replica
        return replica if isinstance(replica, EncodingReplica) else None

    def close(self) -> None:
        """Ends every job as it stands, and those that still come."""
        self._closed = True
        while self._jobs:
            _finish(self._jobs.popleft())


def _finish(job: EncodingJob) -> None:
    job.items.clear()
    if job.done.set_running_or_notify_cancel():
        job.done.set_result(job.encoded)
