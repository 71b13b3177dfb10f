"""What waits to be sent on one WebSocket: many writers in, one writer out, bounded in bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Outgoing:
    """One frame that waits to be sent.

    Attributes:
        owner: The context it belongs to; None for the session itself.
        data: Text or binary frame.
        audio: Whether it counts against the bound for audio.
        seconds: Duration of the audio in it.
        taken: Whether the writer has it; then it cannot be taken back any more.
        sent: Set when it was handed to the connection.
    """

    owner: str | None
    data: str | bytes
    audio: bool
    seconds: float = 0.0
    taken: bool = False
    sent: asyncio.Event = field(default_factory=asyncio.Event)


class Outbox:
    """A queue in which audio waits for room and answers do not.

    A context that makes audio has to wait while its client is behind; the acknowledgement of a
    cancellation must not wait behind that audio's room. Answers are bounded by `control_room`,
    which the reader awaits before it takes the next event in.
    """

    def __init__(self, audio_bytes: int, control_frames: int = 256) -> None:
        """Sets the bounds: bytes of audio, and frames of everything else."""
        self._audio_limit = audio_bytes
        self._control_limit = control_frames
        self._frames: deque[Outgoing] = deque()
        self._audio_bytes = 0
        self._control_frames = 0
        self._changed = asyncio.Event()
        self._audio_room = asyncio.Event()
        self._control_room = asyncio.Event()
        self._audio_room.set()
        self._control_room.set()
        self._finished = False

    async def put_audio(self, owner: str, data: str | bytes, seconds: float = 0.0) -> None:
        """Adds a frame, as soon as less than the bound is waiting."""
        while self._audio_bytes >= self._audio_limit:
            await self._audio_room.wait()
        self._add(Outgoing(owner, data, audio=True, seconds=seconds))

    def put(self, owner: str | None, data: str) -> Outgoing:
        """Adds a frame at once."""
        frame = Outgoing(owner, data, audio=False)
        self._add(frame)
        return frame

    async def control_room(self) -> None:
        """Waits while too many answers are waiting."""
        await self._control_room.wait()

    def purge(self, owner: str) -> None:
        """Takes back every frame of a context that the writer does not have yet."""
        kept = deque(frame for frame in self._frames if frame.owner != owner)
        for frame in self._frames:
            if frame.owner == owner:
                self._count(frame, -1)
        self._frames = kept

    async def take(self) -> Outgoing | None:
        """The next frame to send; None when the outbox is finished and empty."""
        while not self._frames:
            if self._finished:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        frame.taken = True
        self._count(frame, -1)
        return frame

    def finish(self) -> None:
        """Lets `take` end once everything was taken."""
        self._finished = True
        self._changed.set()

    def _add(self, frame: Outgoing) -> None:
        self._frames.append(frame)
        self._count(frame, 1)
        self._changed.set()

    def _count(self, frame: Outgoing, sign: int) -> None:
        if frame.audio:
            self._audio_bytes += sign * len(frame.data)
            _set_if(self._audio_room, self._audio_bytes < self._audio_limit)
        else:
            self._control_frames += sign
            _set_if(self._control_room, self._control_frames < self._control_limit)


def _set_if(event: asyncio.Event, condition: bool) -> None:
    if condition:
        event.set()
    else:
        event.clear()
