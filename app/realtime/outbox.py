"""What waits to be sent on one socket: bounded in bytes, and without what nobody should hear."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass

from app.identifiers import new_identifier
from app.realtime.output import ServerEvent, SpokenText


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame that waits to be sent.

    Attributes:
        text: What is sent.
        item: The answer whose sound it carries; None for all other events.
        ticks: How much sound that is.
        spoken: Words whose times became known with it.
    """

    text: str
    item: str | None = None
    ticks: int = 0
    spoken: tuple[SpokenText, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """How a socket is closed by the server.

    Attributes:
        code: The WebSocket close code.
        reason: The reason beside it.
        orderly: Whether what waits is sent first.
    """

    code: int
    reason: str
    orderly: bool = True


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
        self.closing: Closing | None = None

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

    def put(self, event: ServerEvent) -> Frame:
        """Adds an event."""
        fields = {"event_id": new_identifier("event"), **event.fields}
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        frame = Frame(text, event.item, event.ticks, event.spoken)
        self.put_frame(frame)
        return frame

    def put_frame(self, frame: Frame) -> None:
        """Adds a frame."""
        if self.closing is not None:
            return
        self._frames.append(frame)
        self._count(frame, 1)
        self._changed.set()

    def purge(self, item: str) -> int:
        """Drops an answer's sound that waits.

        Returns:
            How much that was, in ticks.
        """
        dropped = [frame for frame in self._frames if frame.item == item]
        self._frames = deque(frame for frame in self._frames if frame.item != item)
        for frame in dropped:
            self._count(frame, -1)
        return sum(frame.ticks for frame in dropped)

    async def head(self) -> Frame | None:
        """Waits for the next frame and leaves it; None when the outbox is closed and empty."""
        while not self._frames:
            if self.closing is not None:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._frames[0]

    def take_if_next(self, frame: Frame) -> bool:
        """Takes a frame, unless it was dropped since it was next."""
        if not self._frames or self._frames[0] is not frame:
            return False
        self._frames.popleft()
        self._count(frame, -1)
        return True

    async def take(self) -> Frame | None:
        """The next frame; None when the outbox is closed and empty."""
        while not self._frames:
            if self.closing is not None:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        self._count(frame, -1)
        return frame

    def drain(self) -> list[Frame]:
        """Takes everything that waits."""
        frames = list(self._frames)
        self._frames.clear()
        for frame in frames:
            self._count(frame, -1)
        return frames

    def close(self, closing: Closing) -> None:
        """Takes nothing more. Closing twice is harmless; the first reason stays."""
        if self.closing is None:
            self.closing = closing
            if not closing.orderly:
                self._frames.clear()
                self._other_bytes = 0
                self._count_sound(-self._sound_bytes)
        self._changed.set()

    def _count(self, frame: Frame, sign: int) -> None:
        size = sign * len(frame.text)
        if frame.item is None:
            self._other_bytes += size
        else:
            self._count_sound(size)

    def _count_sound(self, size: int) -> None:
        self._sound_bytes = max(0, self._sound_bytes + size)
        if self._sound_bytes < self._sound_limit:
            self._room.set()
        else:
            self._room.clear()
