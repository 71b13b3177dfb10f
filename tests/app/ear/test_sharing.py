"""Sessions share the ear: nobody's long sound keeps the others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from app.audio.pcm import FloatSamples
from app.audio.wire_formats import WireFormat
from app.ear import FRAME, SAMPLE_RATE
from app.ear.ear import Ear
from app.ear.findings import NO_HINTS, EarFinding, Hints, NothingHeard
from app.ear.listener import MOST_RECORDED, Listener
from app.ear.recognizer import LONGEST_QUICK, Segment
from app.ear.rules import EarSensitivity
from app.ear.tape import PIECE_BYTES

pytestmark = pytest.mark.asyncio


class CountingEar:
    """Hears nobody; notes how many frames it judges at once."""

    def __init__(self) -> None:
        self.judged: list[int] = []
        self.activity = self
        self.may_recognize = asyncio.Event()

    def open(self) -> CountingEar:
        return self

    def reset(self) -> None:
        pass

    def probability(self, _frame: FloatSamples) -> float:
        self.judged[-1] += 1
        return 0.0

    async def hear(self, work: Callable[[], Any]) -> Any:
        self.judged.append(0)
        return work()

    async def recognize(self, _sound: FloatSamples, _hints: Hints) -> str:
        await self.may_recognize.wait()
        return "words"


async def test_minutes_of_sound_in_one_event_are_judged_in_pieces() -> None:
    ear: Any = CountingEar()
    told: list[EarFinding] = []
    listener = Listener(ear, EarSensitivity(), told.append)
    seconds = 120
    listener.append(bytes(2 * 24_000 * seconds), WireFormat.PCM, guarded=False)
    async with asyncio.timeout(20):
        while sum(ear.judged) < seconds * SAMPLE_RATE // FRAME - 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await listener.close()
    assert max(ear.judged) <= PIECE_BYTES / 48_000 * SAMPLE_RATE / FRAME + 1
    dropped = [finding for finding in told if isinstance(finding, NothingHeard)]
    assert len(dropped) > seconds / 2, "silence is forgotten as it is heard"


async def test_recordings_wait_for_room_as_sound_does() -> None:
    ear: Any = CountingEar()
    listener = Listener(ear, EarSensitivity(), lambda _finding: None)
    half = bytes(MOST_RECORDED // 2)
    listener.recognize("first", half, WireFormat.PCM)
    listener.recognize("second", half, WireFormat.PCM)
    await asyncio.wait_for(listener.room(), 1)
    listener.recognize("third", half, WireFormat.PCM)
    room = asyncio.create_task(listener.room())
    await asyncio.sleep(0)
    assert not room.done()
    ear.may_recognize.set()
    async with asyncio.timeout(20):
        await room
    await listener.close()


class CountingRecognizer:
    """Recognizes a word in every ten seconds."""

    def quick(self, _sound: FloatSamples, _hints: Hints) -> str:
        return "quick"

    def segments(self, sound: FloatSamples, **_options: Any) -> Iterator[Segment]:
        for at in range(0, len(sound), 10 * SAMPLE_RATE):
            start = at / SAMPLE_RATE
            yield Segment(f" {start:g}", start, start + 1, (), 0.0, 0.0, 1.0, 0.0, "en")


async def test_others_are_heard_between_the_pieces_of_a_long_turn() -> None:
    ear: Any = Ear.__new__(Ear)
    ear._recognition = ThreadPoolExecutor(1)
    ear._idle = [CountingRecognizer()]
    long = asyncio.create_task(ear.recognize(np.zeros(LONGEST_QUICK + 1, np.float32), NO_HINTS))
    await asyncio.sleep(0)
    short = asyncio.create_task(ear.recognize(np.zeros(100, np.float32), NO_HINTS))
    assert await short == "quick"
    assert not long.done()
    assert await long == "0 10 20"
    ear._recognition.shutdown()
