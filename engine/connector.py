"""The data plane: moving a chunk from here to there, and nothing else.

A connector knows neither topology nor credits. The in-process one hands references over; shared
memory between processes and Ray between machines fit the same four calls.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from engine.chunk import Chunk


@dataclass(frozen=True, slots=True)
class EdgeKey:
    """Names one request's channel between two places, in one epoch.

    Attributes:
        request: The request.
        epoch: The generation number of the session's output.
        source: The producing stage; empty for the client's input.
        target: The consuming stage; empty for the client.
    """

    request: str
    epoch: int
    source: str
    target: str


class OmniConnector(Protocol):
    """Moves chunks. `put` and `take` of one key may come from different threads."""

    def open(self, key: EdgeKey) -> None:
        """Makes room for one channel."""

    def put(self, key: EdgeKey, chunk: Chunk[Any]) -> bool:
        """Hands a chunk over; False if the channel is closed."""

    def take(self, key: EdgeKey) -> Chunk[Any] | None:
        """The oldest chunk, or None if there is none now."""

    def close(self, key: EdgeKey, last: Chunk[Any] | None = None) -> None:
        """Drops what was not taken; `last`, if given, is all that can still be taken."""

    def forget(self, key: EdgeKey) -> None:
        """Frees the channel; idempotent."""


@dataclass(slots=True)
class _Channel:
    chunks: deque[Chunk[Any]]
    closed: bool = False


class InProcessConnector:
    """Hands chunks over by reference, between threads of this process."""

    def __init__(self) -> None:
        """Makes a connector without channels."""
        self._channels: dict[EdgeKey, _Channel] = {}
        self._lock = threading.Lock()

    def open(self, key: EdgeKey) -> None:
        """Makes room for one channel.

        Raises:
            ValueError: It is open already.
        """
        with self._lock:
            if key in self._channels:
                raise ValueError(f"The channel {key} is open already.")
            self._channels[key] = _Channel(deque())

    def put(self, key: EdgeKey, chunk: Chunk[Any]) -> bool:
        """Hands a chunk over; False if the channel is closed or gone."""
        with self._lock:
            channel = self._channels.get(key)
            if channel is None or channel.closed:
                return False
            channel.chunks.append(chunk)
            return True

    def take(self, key: EdgeKey) -> Chunk[Any] | None:
        """The oldest chunk, or None if there is none now."""
        with self._lock:
            channel = self._channels.get(key)
            if channel is None or not channel.chunks:
                return None
            return channel.chunks.popleft()

    def close(self, key: EdgeKey, last: Chunk[Any] | None = None) -> None:
        """Drops what was not taken; `last`, if given, is all that can still be taken."""
        with self._lock:
            channel = self._channels.get(key)
            if channel is None or channel.closed:
                return
            channel.closed = True
            channel.chunks.clear()
            if last is not None:
                channel.chunks.append(last)

    def forget(self, key: EdgeKey) -> None:
        """Frees the channel; idempotent."""
        with self._lock:
            self._channels.pop(key, None)

    def __len__(self) -> int:
        """How many channels are open."""
        return len(self._channels)
