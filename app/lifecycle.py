"""The engine's life inside the server: it starts in the background, serves, and is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import StrEnum

from app.engine_port import EngineFactory, Progress, SpeechEngine
from app.errors import SHUTDOWN_RETRY_SECONDS, retry_later
from engine import ConfigurationError

logger = logging.getLogger(__name__)

START_RETRY_SECONDS = 5.0
"""When a client that came too early should try again."""


STOP_SECONDS = 3.0
"""How long a start that is going on is given to stop."""


class EngineState(StrEnum):
    """Where the engine is in its life."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class EngineLifecycle:
    """Starts an engine while the server answers `/health` already, and closes it at the end.

    Attributes:
        state: Where the engine is in its life.
        step: The last line of progress.
        failure: Why it did not start.
        stuck: Whether the start could not be stopped: a thread is deep in loading a model.
    """

    def __init__(
        self,
        factory: EngineFactory,
        *,
        progress: Progress | None = None,
        settled: Callable[[], None] | None = None,
        process_ends: bool = False,
    ) -> None:
        """Starts nothing yet.

        Args:
            factory: Starts the engine.
            progress: Told each step of the start.
            settled: Called once, when the engine is ready or has failed.
            process_ends: Whether the process ends when this is closed, and frees all there is.
        """
        self.state = EngineState.STARTING
        self.step = "waiting to be started"
        self.failure: Exception | None = None
        self.stuck = False
        self._factory = factory
        self._progress = progress
        self._settled = settled
        self._process_ends = process_ends
        self._engine: SpeechEngine | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def engine(self) -> SpeechEngine:
        """The engine.

        Raises:
            ApiError: It is not ready; 503 with the reason.
        """
        if self._engine is not None and self.state is EngineState.READY:
            return self._engine
        if self.state is EngineState.STARTING:
            raise retry_later(
                f"The server is starting: {self.step}.", "starting", START_RETRY_SECONDS
            )
        raise retry_later("The server is shutting down.", "shutting_down", SHUTDOWN_RETRY_SECONDS)

    @property
    def ready(self) -> bool:
        """Whether the engine serves: warmed up, and no stage is broken."""
        return (
            self._engine is not None
            and self.state is EngineState.READY
            and self._engine.health().ready
        )

    def peek(self) -> SpeechEngine | None:
        """The engine if it was started and not closed, ready or not."""
        return self._engine

    def start(self) -> None:
        """Begins to start the engine in the background."""
        self._task = asyncio.create_task(self._start(), name="start engine")

    async def _start(self) -> None:
        try:
            self._engine = await self._factory(self._report)
        except ConfigurationError as failure:
            self._fail(failure)
        except Exception as failure:  # whatever it is, the server must say so and end
            logger.exception("The engine did not start.")
            self._fail(failure)
        else:
            self.state = EngineState.READY
            self.step = "ready"
        if self._settled is not None:
            self._settled()

    def _fail(self, failure: Exception) -> None:
        self.failure = failure
        self.state = EngineState.FAILED

    def _report(self, step: str) -> None:
        self.step = step
        if self._progress is not None:
            self._progress(step)

    async def close(self) -> None:
        """Stops a start that is going on and closes the engine. May be called twice."""
        if self._task is not None:
            self._task.cancel()
            _, going_on = await asyncio.wait({self._task}, timeout=STOP_SECONDS)
            self.stuck = bool(going_on)
        if self.state is not EngineState.FAILED:
            self.state = EngineState.CLOSED
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close(free=not self._process_ends)
