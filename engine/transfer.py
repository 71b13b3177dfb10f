"""The chunk life cycle on one edge: numbering, credits, end of stream, cancellation, clean-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from engine.chunk import Chunk
from engine.connector import EdgeKey, OmniConnector
from engine.errors import StageError


class TransferState(Enum):
    """Where an edge is in its life. It moves down this list only."""

    OPEN = "open"
    ENDED = "ended"
    CANCELLED = "cancelled"


class ChunkGapError(RuntimeError):
    """A chunk arrived out of order: one was lost or came twice."""


@dataclass(slots=True)
class ChunkTransferAdapter:
    """One request's bounded channel between two places.

    The producer may send while `has_credit`; each chunk uses up its cost until it is taken. The
    two cost counters have one writer each, so that producer and consumer may be on two threads.

    Attributes:
        connector: What moves the chunks.
        key: The channel.
        capacity: The largest sum of costs in flight.
        reserve: The largest cost of one chunk; credit means that one such chunk still fits.
        cost: A payload's cost in the edge's unit.
        state: Where it is in its life.
        sent: Sum of the costs that were sent; written by the producer.
        taken: Sum of the costs that were taken; written by the consumer.
        starved: Whether the producer waits for credit and wants to be woken.
        carries: The types of payload that travel here; None: all.
    """

    connector: OmniConnector
    key: EdgeKey
    capacity: int
    reserve: int
    cost: Callable[[Any], int]
    state: TransferState = TransferState.OPEN
    sent: int = 0
    taken: int = 0
    starved: bool = False
    carries: tuple[type, ...] | None = None
    _next_sent: int = 0
    _next_taken: int = 0
    _final_taken: bool = False
    _costs: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Opens the channel."""
        if self.reserve > self.capacity:
            raise ValueError(
                f"An edge of capacity {self.capacity} cannot hold a chunk of {self.reserve}."
            )
        self.connector.open(self.key)

    @property
    def in_flight(self) -> int:
        """The sum of costs that were sent and not yet taken."""
        return self.sent - self.taken

    @property
    def has_credit(self) -> bool:
        """Whether one more chunk of the largest cost fits."""
        return self.in_flight + self.reserve <= self.capacity

    def check_credit(self) -> bool:
        """Whether there is credit; if not, the consumer is asked to wake the producer."""
        if self.has_credit:
            self.starved = False
            return True
        self.starved = True
        # The consumer may have taken a chunk before it could see the flag: look again.
        return self.has_credit

    def send(self, payload: Any | None, *, final: bool = False) -> None:
        """Sends the next chunk; a payload that does not travel here is left out.

        Raises:
            RuntimeError: The edge has ended: exactly one chunk is final (invariant 4).
        """
        if self.state is TransferState.CANCELLED:
            return
        if self.state is TransferState.ENDED:
            raise RuntimeError(f"The stream {self.key} has ended; nothing can follow.")
        if self.carries is not None and not isinstance(payload, self.carries):
            if not final:
                return
            payload = None
        cost = 0 if payload is None else self.cost(payload)
        chunk = self._envelope(payload, final=final, error=None)
        self._costs[chunk.seq] = cost
        self.sent += cost
        if final:
            self.state = TransferState.ENDED
        self.connector.put(self.key, chunk)

    def fail(self, error: StageError) -> None:
        """Ends the stream at once with an error; what was not taken is dropped."""
        if self.state is TransferState.CANCELLED:
            return
        self.state = TransferState.CANCELLED
        chunk = self._envelope(None, final=True, error=error)
        self.connector.close(self.key, chunk)

    def receive(self) -> Chunk[Any] | None:
        """The next chunk, or None; after the final one there is no other.

        Raises:
            ChunkGapError: The numbering has a gap.
        """
        if self._final_taken:
            return None
        chunk = self.connector.take(self.key)
        if chunk is None:
            return None
        if chunk.seq != self._next_taken and chunk.error is None:
            raise ChunkGapError(
                f"Chunk {chunk.seq} of {self.key} came where {self._next_taken} was due."
            )
        if chunk.error is not None:
            # What was sent between the last chunk that was taken and the failure is gone.
            chunk = replace(chunk, seq=self._next_taken)
        self._next_taken = chunk.seq + 1
        self._final_taken = chunk.final
        self.taken += self._costs.pop(chunk.seq, 0)
        return chunk

    def release(self) -> None:
        """Frees the channel; idempotent."""
        self.state = TransferState.CANCELLED
        self.connector.forget(self.key)
        self._costs.clear()
        self.taken = self.sent

    def _envelope(
        self, payload: Any | None, *, final: bool, error: StageError | None
    ) -> Chunk[Any]:
        seq = self._next_sent
        self._next_sent += 1
        return Chunk(self.key.request, self.key.epoch, self.key.source, seq, payload, final, error)
