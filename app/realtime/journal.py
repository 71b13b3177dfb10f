"""What was sent lately, for a client that comes back on another socket."""

from __future__ import annotations

from collections import deque

from app.realtime.outbox import Frame


class Journal:
    """The latest frames of a session, bounded in bytes."""

    def __init__(self, most_bytes: int) -> None:
        """Begins empty."""
        self._most_bytes = most_bytes
        self._frames: deque[Frame] = deque()
        self._bytes = 0

    def note(self, frame: Frame) -> None:
        """Keeps a frame; the oldest make room for it."""
        self._frames.append(frame)
        self._bytes += len(frame.text)
        while self._bytes > self._most_bytes:
            self._bytes -= len(self._frames.popleft().text)

    def forget_sound(self, item: str) -> None:
        """Drops an answer's sound, which nobody should hear any more."""
        self._frames = deque(frame for frame in self._frames if frame.item != item)
        self._bytes = sum(len(frame.text) for frame in self._frames)

    def after(self, event_id: str) -> list[Frame] | None:
        """What was sent after an event; None if that is not known any more."""
        mark = f'"event_id":"{event_id}"'
        for position, frame in enumerate(self._frames):
            if mark in frame.text[:200]:
                return list(self._frames)[position + 1 :]
        return None

    def unheard(self, item: str, ticks: int) -> list[Frame]:
        """An answer's sound from a point on, and what was sent since the delta that holds it."""
        heard = 0
        frames = list(self._frames)
        for position, frame in enumerate(frames):
            if frame.item != item:
                continue
            if heard + frame.ticks > ticks:
                return frames[position:]
            heard += frame.ticks
        return []
