"""How much of an answer has been heard, as far as a clock can tell."""

from __future__ import annotations

from collections.abc import Callable

from app.audio.wire_formats import TICKS_PER_SECOND


class Playback:
    """A client that plays what it gets at once and without a pause.

    What clients say themselves, by truncating an answer, counts more than this.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._item: str | None = None
        self._sent = 0
        self._ends = 0.0

    @property
    def item(self) -> str | None:
        """The answer whose sound was sent last."""
        return self._item

    @property
    def ends(self) -> float:
        """When everything that was sent will have been heard, on the clock."""
        return self._ends

    @property
    def going_on(self) -> bool:
        """Whether something is being heard."""
        return self._clock() < self._ends

    def sent(self, item: str, ticks: int) -> None:
        """Sound of an answer left for the client."""
        if item != self._item:
            self._item, self._sent = item, 0
        self._sent += ticks
        self._ends = max(self._ends, self._clock()) + ticks / TICKS_PER_SECOND

    def heard(self, item: str) -> int:
        """How much of an answer has been heard by now, in ticks."""
        if item != self._item:
            return 0
        ahead = max(0.0, self._ends - self._clock())
        return max(0, self._sent - round(ahead * TICKS_PER_SECOND))

    def go_on(self, delivered: int) -> None:
        """Another socket goes on with the answer, of which the client has got so many ticks."""
        self._sent = delivered
        self.stop()

    def stop(self) -> None:
        """The client stops playing."""
        self._ends = min(self._ends, self._clock())
