"""What the app needs of an engine: the shape of `engine.engine.AsyncOmniEngine`.

Named as a protocol, so that nothing here imports torch and tests can speak without a model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

from prometheus_client import CollectorRegistry

from engine import (
    AbortReason,
    AudioContent,
    AudioPayload,
    Chunk,
    EngineHealth,
    OmniRequest,
    PipelineDescription,
    TextReport,
)


class SpeechEngine(Protocol):
    """A started engine."""

    @property
    def description(self) -> PipelineDescription:
        """What clients may know about the pipeline."""
        ...

    @property
    def registry(self) -> CollectorRegistry:
        """The engine's own metrics."""
        ...

    def inspect(self, text: str) -> TextReport:
        """A quick look at a text before any of it is spoken."""
        ...

    def generate(self, request: OmniRequest) -> AsyncGenerator[Chunk[AudioPayload]]:
        """Speaks; closing the generator aborts the request in the engine."""
        ...

    def replace(self, request: OmniRequest) -> AsyncGenerator[Chunk[AudioPayload]]:
        """As `generate`, in the place of the session's older request, which ends before."""
        ...

    async def hear(self, sound: AudioContent) -> None:
        """Encodes the beginning of a sound of which more is to come, where that delays nobody."""
        ...

    async def abort(self, request_id: str, reason: AbortReason = AbortReason.ASKED) -> None:
        """Ends a request; acknowledged when it returns, harmless when there is none."""
        ...

    async def end_session(self, session: str) -> None:
        """Forgets a session whose requests fence each other; what is live of it is ended."""
        ...

    def health(self) -> EngineHealth:
        """Whether the engine can serve."""
        ...

    async def close(self, *, free: bool = True) -> None:
        """Ends all requests and frees everything, its memory only if that is wanted."""
        ...


Progress = Callable[[str], None]
"""Takes one line that says what a starting engine is doing."""

EngineFactory = Callable[[Progress], Awaitable[SpeechEngine]]
"""Starts an engine: prepared and warmed up when it returns."""
