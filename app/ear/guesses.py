"""Finds words out before a turn is over, so that they are known soon after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from app.audio.pcm import FloatSamples
from app.audio.wire_formats import WireFormat
from app.ear import SAMPLE_RATE
from app.ear.findings import EarFinding, Guessed, Heard, Hints, NotRecognized, Recognized
from app.ear.tape import Tape, pieces

if TYPE_CHECKING:
    from app.ear.ear import Ear

logger = logging.getLogger(__name__)

SHORTEST = SAMPLE_RATE // 10
"""Sound that is shorter than this holds no words."""

_MARGIN = SAMPLE_RATE // 5
"""How much of the silence behind the last speech is looked at."""


@dataclass(frozen=True, slots=True)
class _Guess:
    """The words of a turn as far as a pause in it."""

    start: int
    end: int
    words: asyncio.Task[str]


class Guesses:
    """The recognition of one session's turns."""

    def __init__(self, ear: Ear, tell: Callable[[EarFinding], None]) -> None:
        """`tell` takes what was found out; called on the event loop."""
        self._ear = ear
        self._tell = tell
        self._guess: _Guess | None = None
        self._question: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def guess(self, start: int, end: int, sound: FloatSamples, hints: Hints) -> None:
        """Begins to find out the words of a turn that has paused."""
        self._drop_guess()
        words = self._spawn(self._ear.recognize(sound, hints))
        guess = self._guess = _Guess(start, end, words)

        def known(task: asyncio.Task[str]) -> None:
            wanted = self._guess is guess and not task.cancelled() and task.exception() is None
            if wanted and task.result():
                self._tell(Guessed(task.result()))

        words.add_done_callback(known)

    def ask_whether_finished(self, sound: FloatSamples, answered: Callable[[float], None]) -> None:
        """Begins to find out whether the turn is complete as it stands."""

        async def ask() -> None:
            answered(await self._ear.finished(sound))

        self._question = self._spawn(ask())

    def withdraw(self) -> None:
        """The turn goes on, or is forgotten: what was guessed does not matter any more."""
        self._drop_guess()
        if self._question is not None:
            self._question.cancel()
            self._question = None

    def settle(
        self,
        item_id: str,
        stretch: tuple[int, int],
        last_speech: int,
        sound: FloatSamples,
        hints: Hints,
    ) -> None:
        """A stretch of sound has become an item: finds its words out and tells them.

        Args:
            item_id: The item.
            stretch: Its first sample and the one behind its last.
            last_speech: Behind the last sample that was speech.
            sound: The stretch.
            hints: What is known about the words beforehand.
        """
        start, end = stretch
        guess, self._guess = self._guess, None
        if self._question is not None:
            self._question.cancel()
            self._question = None
        seconds = len(sound) / SAMPLE_RATE
        self._tell(Heard(item_id, sound))
        if guess is not None and guess.start == start and last_speech <= guess.end <= end:
            self._spawn(self._tell_words(item_id, guess.words, seconds))
            return
        if guess is not None:
            guess.words.cancel()
        if start < last_speech < end:
            sound = sound[: last_speech + _MARGIN - start]
        words = self._spawn(self._recognize(sound, hints))
        self._spawn(self._tell_words(item_id, words, seconds))

    def recognize_recording(
        self, item_id: str, data: bytes, audio_format: WireFormat, hints: Hints
    ) -> asyncio.Task[None]:
        """Finds the words of a whole recording out and tells them.

        Returns:
            What ends when they are told.
        """

        async def recognize() -> None:
            tape = Tape()
            for piece in pieces(data):
                await self._ear.hear(partial(tape.append, piece, audio_format))
            await self._ear.hear(tape.flush)
            sound = tape.cut(0, tape.end)
            self._tell(Heard(item_id, sound))
            words = self._spawn(self._recognize(sound, hints))
            await self._tell_words(item_id, words, len(sound) / SAMPLE_RATE)

        return self._spawn(recognize())

    async def close(self) -> None:
        """Stops; nothing is told any more when it returns."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _recognize(self, sound: FloatSamples, hints: Hints) -> str:
        return "" if len(sound) < SHORTEST else await self._ear.recognize(sound, hints)

    async def _tell_words(self, item_id: str, words: asyncio.Task[str], seconds: float) -> None:
        await asyncio.wait({words})
        failure = None if words.cancelled() else words.exception()
        if words.cancelled() or failure is not None:
            logger.error("Recognition failed.", exc_info=failure)
            self._tell(NotRecognized(item_id, "The words could not be recognized."))
            return
        self._tell(Recognized(item_id, words.result(), seconds))

    def _drop_guess(self) -> None:
        if self._guess is not None:
            self._guess.words.cancel()
            self._guess = None

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
