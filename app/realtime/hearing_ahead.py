"""Lets a Thinker that hears take in a turn while the user still speaks."""

from __future__ import annotations

import asyncio
import logging

from app.audio.pcm import FloatSamples
from app.engine_port import SpeechEngine
from engine import AudioContent

logger = logging.getLogger(__name__)


class HearingAhead:
    """One session's hearing ahead; the actor alone calls it.

    The engine is given the turn as far as it has come, and encodes of that what will not change.
    One beginning is encoded at a time; of what was said meanwhile only the newest comes after it.
    """

    def __init__(self, engine: SpeechEngine) -> None:
        """Hears nothing yet."""
        self._engine = engine
        self._newest: AudioContent | None = None
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self, samples: FloatSamples) -> None:
        """The turn has come so far.

        Args:
            samples: All of it, 16 kHz.
        """
        self._newest = AudioContent(samples)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="hearing ahead")
            self._tasks.add(self._task)
            self._task.add_done_callback(self._ended)

    def stop(self) -> None:
        """Stops: the turn has ended, or is forgotten."""
        self._newest = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def join(self) -> None:
        """Stops, and waits until the engine has let go."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        while self._newest is not None:
            sound, self._newest = self._newest, None
            await self._engine.hear(sound)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._task is task:
            self._task = None
        if not task.cancelled() and task.exception() is not None:
            # Nothing depends on it: the answer's own request encodes what is missing.
            logger.error("A turn was not encoded ahead.", exc_info=task.exception())
