"""What waits to be sent on one socket: bounded in bytes, and without what nobody should hear."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass

from app.identifiers import new_identifier
from app.realtime.output import ServerEvent


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame that waits to be sent.

    Attributes:
        text: What is sent.
        owner: The response whose sound it carries; None for all other events.
        ticks: How much sound that is.
        item: The item whose sound it is.
    """

    text: str
    owner: str | None = None
    ticks: int = 0
    item: str | None = None


class Outbox:
    """A queue that sound waits for and nothing else does.

    Who makes sound waits for `room` first. All other events are taken at once and never dropped;
    if more of them wait than a client that reads could leave, `overfull` says so and the session
    is ended.
    """

    def __init__(self, sound_bytes: int, other_bytes: int) -> None:
        """Sets the bounds, in bytes."""
        self._sound_limit = sound_bytes
        self._other_limit = other_bytes
        self._frames: deque[Frame] = deque()
        self._sound_bytes = 0
        self._other_bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._finished = False

    @property
    def overfull(self) -> bool:
        """Whether more waits than is allowed to."""
        return self._other_bytes > self._other_limit

    @property
    def waiting(self) -> int:
        """Bytes that wait."""
        return self._sound_bytes + self._other_bytes

    async def room(self) -> None:
        """Waits until less sound waits than may."""
        while self._sound_bytes >= self._sound_limit:
            await self._room.wait()

    def reserve(self, size: int) -> None:
        """Counts bytes of sound that are on their way to `put`; `reserve(-size)` ends that."""
        self._count_sound(size)

    def put(self, event: ServerEvent, owner: str | None = None) -> str:
        """Adds an event; `owner` names the response if it carries sound.

        Returns:
            The frame's text.
        """
        fields = {"event_id": new_identifier("event"), **event.fields}
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        carries = owner if event.ticks else None
        self.put_frame(Frame(text, carries, event.ticks, event.item))
        return text

    def put_frame(self, frame: Frame) -> None:
        """Adds a frame."""
        if self._finished:
            return
        self._frames.append(frame)
        self._count(frame, 1)
        self._changed.set()

    def purge(self, owner: str) -> int:
        """Drops a response's sound that waits.

        Returns:
            How much that was, in ticks.
        """
        dropped = [frame for frame in self._frames if frame.owner == owner]
        self._frames = deque(frame for frame in self._frames if frame.owner != owner)
        for frame in dropped:
            self._count(frame, -1)
        return sum(frame.ticks for frame in dropped)

    async def take(self) -> Frame | None:
        """The next frame; None when the outbox is finished and empty."""
        while not self._frames:
            if self._finished:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        self._count(frame, -1)
        return frame

    def finish(self) -> None:
        """Takes nothing more; `take` ends after what is in it."""
        self._finished = True
        self._changed.set()

    def abandon(self) -> None:
        """Forgets everything; for a socket that nobody reads any more."""
        self._frames.clear()
        self._other_bytes = 0
        self._count_sound(-self._sound_bytes)
        self.finish()

    def _count(self, frame: Frame, sign: int) -> None:
        size = sign * len(frame.text)
        if frame.owner is None:
            self._other_bytes += size
        else:
            self._count_sound(size)

    def _count_sound(self, size: int) -> None:
        self._sound_bytes = max(0, self._sound_bytes + size)
        if self._sound_bytes < self._sound_limit:
            self._room.set()
        else:
            self._room.clear()
