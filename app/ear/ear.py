"""The loaded models and the threads that they run on; all sessions share one ear."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE
from app.ear.activity import ActivityModel
from app.ear.findings import NO_HINTS, Hints
from app.ear.recognizer import LONGEST_QUICK, Recognizer, Segment
from app.ear.stretches import stretches
from app.ear.turn_end import TurnEndModel

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class EarFolders:
    """Where the three models lie."""

    activity: Path
    turn_end: Path
    recognizer: Path


class Ear:
    """Hears for many sessions.

    Judging sound as it comes has threads of its own, so that it never waits for recognition.

    Attributes:
        activity: The model that tells speech from other sounds.
        languages: The codes of the languages whose words it recognizes.
    """

    def __init__(self, folders: EarFolders, *, hearing_threads: int, recognizers: int) -> None:
        """Loads the models, which takes about a second; not for the event loop.

        Args:
            folders: Where the models lie.
            hearing_threads: Threads that judge sound as it comes.
            recognizers: Copies of the recognizer, each with a thread of its own.
        """
        self._hearing = ThreadPoolExecutor(hearing_threads, thread_name_prefix="antiphon-hearing")
        self._recognition = ThreadPoolExecutor(recognizers, thread_name_prefix="antiphon-words")
        self.activity = ActivityModel(folders.activity)
        self._turn_end = TurnEndModel(folders.turn_end)
        self._idle = [Recognizer(folders.recognizer) for _ in range(recognizers)]
        self.languages = self._idle[0].languages

    async def hear(self, work: Callable[[], Result]) -> Result:
        """Does something short with sound on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._hearing, work)

    async def finished(self, turn: FloatSamples) -> float:
        """The probability that a turn is complete as it stands."""
        return await self.hear(lambda: self._turn_end.finished(turn))

    async def recognize(self, sound: FloatSamples, hints: Hints = NO_HINTS) -> str:
        """What is said in a turn; others get their turn between the pieces of a long one."""
        if len(sound) <= LONGEST_QUICK:
            return await self._with_recognizer(lambda one: one.quick(sound, hints))
        pieces = self.segments(sound, language=hints.language, prompt=hints.prompt or None)
        async with aclosing(pieces):
            return "".join([piece.text async for piece in pieces]).strip()

    async def segments(
        self,
        sound: FloatSamples,
        *,
        language: str | None = None,
        prompt: str | None = None,
        temperature: float = 0.0,
        words: bool = False,
    ) -> AsyncGenerator[Segment]:
        """What is said in a recording, piece by piece; others get their turn between pieces."""
        cut = await self._with_recognizer(lambda _one: list(stretches(sound)))
        for begin, stretch in cut:
            heard = self._pieces(
                stretch,
                start=begin / SAMPLE_RATE,
                language=language,
                prompt=prompt,
                temperature=temperature,
                words=words,
            )
            async with aclosing(heard) as pieces:
                async for segment in pieces:
                    language = segment.language
                    yield segment

    async def _pieces(self, stretch: FloatSamples, **options: Any) -> AsyncGenerator[Segment]:
        """The pieces of one stretch, each found out when it is asked for.

        Args:
            stretch: The sound.
            options: Of `Recognizer.segments`.
        """
        pieces: Iterator[Segment] | None = None

        # The iterator belongs to the recognizer it was made by, and keeps nothing of it between two
        # pieces; whichever thread comes next may go on with it.
        def step(one: Recognizer) -> Segment | None:
            nonlocal pieces
            if pieces is None:
                pieces = one.segments(stretch, **options)
            return next(pieces, None)

        while (segment := await self._with_recognizer(step)) is not None:
            yield segment

    def close(self) -> None:
        """Takes no more work and lets the running pieces end."""
        self._hearing.shutdown(wait=False, cancel_futures=True)
        self._recognition.shutdown(wait=False, cancel_futures=True)

    async def _with_recognizer(self, work: Callable[[Recognizer], Result]) -> Result:
        def run() -> Result:
            # As many threads as recognizers: one is always idle here.
            one = self._idle.pop()
            try:
                return work(one)
            finally:
                self._idle.append(one)

        return await asyncio.get_running_loop().run_in_executor(self._recognition, run)
