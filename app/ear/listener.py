"""Listens for one session: sound in, findings out, in order and without blocking anybody."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from app.audio.wire_formats import WireFormat
from app.ear import FRAME, SAMPLE_RATE
from app.ear.detector import Finding, Found, TurnDetector
from app.ear.findings import (
    EarFinding,
    HearingRules,
    NothingHeard,
    SaidSoFar,
    TurnBegan,
    TurnEnded,
)
from app.ear.guesses import Guesses
from app.ear.rules import EarSensitivity, turn_rules
from app.ear.tape import Tape, pieces, samples_of, ticks_of

if TYPE_CHECKING:
    from app.ear.ear import Ear

_REPORTED = SAMPLE_RATE
"""Silence is reported as dropped a second at a time."""

MOST_WAITING = 4 << 20
"""Bytes of sound that may wait to be heard before whoever brings it has to wait."""

MOST_RECORDED = 32 << 20
"""The same of whole recordings, whose words take longer; nobody should wait for those of one."""

ABSENCE_SECONDS = 1.0
"""In a turn, sound that is missing for longer counts as silence; networks stumble for less."""


@dataclass(frozen=True, slots=True)
class _Sound:
    data: bytes
    audio_format: WireFormat
    guarded: bool
    arrived: float


@dataclass(frozen=True, slots=True)
class _Restart:
    hearing: int
    start: int


@dataclass(frozen=True, slots=True)
class _Commit:
    item_id: str
    start: int
    end: int


class Listener:
    """The ear of one session. All methods belong to the event loop."""

    def __init__(
        self,
        ear: Ear,
        sensitivity: EarSensitivity,
        tell: Callable[[EarFinding], None],
        *,
        stretch: int | None = None,
    ) -> None:
        """Begins to listen.

        Args:
            ear: The models.
            sensitivity: What the operator set.
            tell: Takes findings; called on the event loop.
            stretch: Samples after which it is told again what was said so far; None: it is not.
        """
        self._ear = ear
        self._sensitivity = sensitivity
        self._tell = tell
        self._stretch = stretch
        self._told = (0, 0)
        self._rules = HearingRules()
        self._tape = Tape()
        self._activity = ear.activity.open()
        self._detector = TurnDetector(turn_rules(self._rules, sensitivity))
        self._guesses = Guesses(ear, tell)
        self._hearing = 0
        self._heard = 0
        self._last_arrival = 0.0
        self._turn_start = 0
        self._uncommitted: int | None = None
        self._orders: deque[_Sound | _Restart | _Commit | HearingRules] = deque()
        self._waiting_bytes = 0
        self._recorded_bytes = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._task = asyncio.create_task(self._work(), name="listener")

    def append(self, data: bytes, audio_format: WireFormat, *, guarded: bool) -> None:
        """More sound; `guarded` says that an answer is being heard by the user."""
        self._wait_for(sound=len(data))
        self._order(_Sound(data, audio_format, guarded, time.monotonic()))

    def configure(self, rules: HearingRules) -> None:
        """From here on, turns are found like this."""
        self._order(rules)

    def restart(self, hearing: int, start: int) -> None:
        """Forgets everything before a tick and any turn; findings carry the new number."""
        self._order(_Restart(hearing, start))

    def commit(self, item_id: str, start: int, end: int) -> None:
        """A stretch of sound, in ticks, is an item whose words are wanted."""
        self._order(_Commit(item_id, start, end))

    def recognize(self, item_id: str, data: bytes, audio_format: WireFormat) -> None:
        """Finds out the words of sound that belongs to no turn."""
        self._wait_for(recorded=len(data))
        task = self._guesses.recognize_recording(item_id, data, audio_format, self._rules.hints)
        task.add_done_callback(lambda _: self._wait_for(recorded=-len(data)))

    async def room(self) -> None:
        """Waits while too much sound waits to be heard."""
        await self._room.wait()

    async def close(self) -> None:
        """Stops; nothing is told any more when it returns."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._guesses.close()

    @property
    def task(self) -> asyncio.Task[None]:
        """Ends only when it is closed, or by a fault of ours."""
        return self._task

    def _wait_for(self, *, sound: int = 0, recorded: int = 0) -> None:
        """More bytes wait, or fewer."""
        self._waiting_bytes += sound
        self._recorded_bytes += recorded
        if self._waiting_bytes > MOST_WAITING or self._recorded_bytes > MOST_RECORDED:
            self._room.clear()
        else:
            self._room.set()

    def _order(self, order: _Sound | _Restart | _Commit | HearingRules) -> None:
        self._orders.append(order)
        self._wake.set()

    async def _work(self) -> None:
        while True:
            while not self._orders:
                await self._wait()
            order = self._orders.popleft()
            match order:
                case _Sound():
                    await self._hear(order)
                    self._wait_for(sound=-len(order.data))
                case HearingRules():
                    self._rules = order
                    self._detector.rules = turn_rules(order, self._sensitivity)
                case _Restart():
                    await self._restart(order)
                case _Commit():
                    await self._commit(order)

    async def _wait(self) -> None:
        """Waits for an order; where a turn's sound stops coming, the turn ends all the same."""
        self._wake.clear()
        counts_from = self._last_arrival + ABSENCE_SECONDS
        due = None
        if self._detector.in_turn and self._rules.kind != "none":
            missing = self._detector.next_silence - (self._heard - self._detector.last_speech)
            due = counts_from + max(0, missing) / SAMPLE_RATE
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            now = time.monotonic()
            # Rounding up: what is due now must not be a sample short of it.
            absent = int((now - counts_from) * SAMPLE_RATE) + 1
            for found in self._detector.absent(self._heard, absent):
                self._follow(found, now)

    async def _hear(self, sound: _Sound) -> None:
        self._last_arrival = sound.arrived
        detecting = self._rules.kind != "none"
        for piece in pieces(sound.data):
            judged = await self._ear.hear(
                partial(self._judge, piece, sound.audio_format, detecting)
            )
            for end, probability in judged:
                for found in self._detector.frame(end, probability, guarded=sound.guarded):
                    self._follow(found, sound.arrived)
            await self._tell_what_was_said(detecting)
            if detecting:
                self._forget_silence()

    def _judge(
        self, data: bytes, audio_format: WireFormat, detecting: bool
    ) -> list[tuple[int, float]]:
        """On a thread: takes sound in and judges every whole frame of it."""
        self._tape.append(data, audio_format)
        if not detecting:
            self._heard = self._tape.end
            return []
        judged = []
        while self._heard + FRAME <= self._tape.end:
            frame = self._tape.cut(self._heard, self._heard + FRAME)
            self._heard += FRAME
            judged.append((self._heard, self._activity.probability(frame)))
        return judged

    async def _tell_what_was_said(self, detecting: bool) -> None:
        """Tells what was said so far, each time that another stretch of it is complete."""
        if self._stretch is None or (detecting and not self._detector.in_turn):
            return
        start = self._turn_start if detecting else self._tape.begin
        # A little more than the stretch, since features of sound reach beyond their place.
        stretches = (self._heard - start - FRAME) // self._stretch
        told = self._told[1] if self._told[0] == start else 0
        # All of it is looked at each time: in a long turn more seldom, so that this costs no more.
        if stretches - told < max(1, told // 8):
            return
        self._told = (start, stretches)
        said = await self._ear.hear(partial(self._tape.cut, start, self._heard))
        self._tell(SaidSoFar(self._hearing, said))

    def _follow(self, found: Found, arrived: float) -> None:
        match found.finding:
            case Finding.BEGUN:
                self._turn_start = max(found.position, self._tape.begin)
                self._uncommitted = self._turn_start
                self._tell(TurnBegan(self._hearing, ticks_of(self._turn_start), arrived))
            case Finding.PAUSED:
                self._look_at(found.position)
            case Finding.RESUMED:
                self._guesses.withdraw()
            case Finding.ENDED:
                self._tell(TurnEnded(self._hearing, ticks_of(found.position)))

    def _look_at(self, position: int) -> None:
        """At a pause: begins to find out the words, and whether that was all."""
        turn = self._tape.cut(self._turn_start, position)
        self._guesses.guess(self._turn_start, position, turn, self._rules.hints)
        if self._rules.kind == "semantic":
            self._guesses.ask_whether_finished(turn, self._answered)

    def _answered(self, probability: float) -> None:
        """What the model of turn ends says about the pause that is going on."""
        if probability < self._detector.rules.confidence:
            return
        for found in self._detector.finish(self._heard):
            self._tell(TurnEnded(self._hearing, ticks_of(found.position)))

    def _forget_silence(self) -> None:
        if self._uncommitted is not None:
            return
        before = self._heard - self._detector.rules.padding - self._detector.rules.guarded_shortest
        if before - self._tape.begin < _REPORTED:
            return
        self._tape.drop_before(before)
        self._tell(NothingHeard(self._hearing, ticks_of(before)))

    async def _restart(self, order: _Restart) -> None:
        await self._ear.hear(self._tape.flush)
        self._tape.drop_half_sample()
        self._tape.drop_before(samples_of(order.start))
        self._guesses.withdraw()
        self._activity.reset()
        self._detector = TurnDetector(self._detector.rules)
        self._hearing = order.hearing
        self._heard = max(self._heard, self._tape.begin)
        self._uncommitted = None

    async def _commit(self, order: _Commit) -> None:
        start, end = samples_of(order.start), samples_of(order.end)
        if end > self._tape.end:
            await self._ear.hear(self._tape.flush)
        sound = self._tape.cut(start, end)
        last_speech = self._detector.last_speech
        self._guesses.settle(order.item_id, (start, end), last_speech, sound, self._rules.hints)
        self._tape.drop_before(end)
        self._uncommitted = self._turn_start if self._detector.in_turn else None
