"""The client's end of a request, on the event loop: an async stream of chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from engine.chunk import Chunk
from engine.transfer import ChunkTransferAdapter


class ClientStream:
    """Reads a request's client edges as the engine thread fills them.

    What has been cancelled cannot be read any more: the edge holds nothing but its final chunk
    from the moment of the cancellation on (the fence, invariant 7).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, wake_engine: Callable[[], None]) -> None:
        """Makes a stream without edges; `attach` gives it those.

        Args:
            loop: The event loop that reads.
            wake_engine: Tells the engine thread that credit came back.
        """
        self._loop = loop
        self._wake_engine = wake_engine
        self._changed = asyncio.Event()
        self._edges: list[ChunkTransferAdapter] = []

    def attach(self, edges: list[ChunkTransferAdapter]) -> None:
        """Names the edges to read; on the event loop, before reading."""
        self._edges = list(edges)

    def notify(self) -> None:
        """Says that there is something to read; from any thread."""
        self._loop.call_soon_threadsafe(self._changed.set)

    async def chunks(self) -> AsyncIterator[Chunk[Any]]:
        """Every chunk of every edge, as it comes, until all edges have ended."""
        open_edges = list(self._edges)
        while open_edges:
            self._changed.clear()
            for edge in list(open_edges):
                while (chunk := edge.receive()) is not None:
                    if edge.starved and edge.has_credit:
                        self._wake_engine()
                    if chunk.final:
                        open_edges.remove(edge)
                    yield chunk
            if open_edges:
                await self._changed.wait()

    def release(self) -> None:
        """Frees the edges; idempotent."""
        for edge in self._edges:
            edge.release()
