"""Lets the Thinker read a turn while it is not sure yet that the turn has ended."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from app.engine_port import SpeechEngine
from app.realtime.closing import surely_closing
from engine import EngineError, OmniRequest

logger = logging.getLogger(__name__)


class ReadingAhead:
    """One session's reading ahead; the actor alone calls it.

    Between the recognition of a turn's words, which begins when the user pauses, and the decision
    that the pause is the turn's end, the Thinker has nothing to do. It reads what it will be asked
    then: the request is given up after a token, but its prompt stays in the prefix cache, so that
    the answer begins sooner by the time that it takes to read. A user who goes on speaking has cost
    that time and nothing else, and it is not spent while anybody is being served.
    """

    def __init__(self, engine: SpeechEngine) -> None:
        """Reads nothing yet."""
        self._engine = engine
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def allowed(self) -> bool:
        """Whether the engine has nothing else to do than to read for this session."""
        health = self._engine.health()
        return health.ready and health.running <= len(self._tasks) and not health.waiting

    def begin(self, request: OmniRequest) -> None:
        """Begins to read what a request would answer; what was read before does not matter now."""
        self.stop()
        assert request.chat is not None
        one_token = replace(request, chat=replace(request.chat, max_tokens=1))
        self._task = asyncio.create_task(self._read(one_token), name="reading ahead")
        # One that was stopped is not over until the engine has let go of it.
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Stops: the turn goes on, or its answer is asked for."""
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    async def join(self) -> None:
        """Stops, and waits until the engine has let go."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, request: OmniRequest) -> None:
        try:
            async with surely_closing(self._engine.generate(request)) as chunks:
                async for _ in chunks:
                    pass
        except EngineError as failure:
            logger.debug("Nothing was read ahead: %s", failure)
