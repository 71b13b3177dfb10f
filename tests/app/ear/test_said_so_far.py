"""What was said so far is told by stretches, and in long turns more seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.audio.wire_formats import WireFormat
from app.ear.findings import EarFinding, Heard, HearingRules, SaidSoFar
from app.ear.listener import Listener
from app.ear.rules import EarSensitivity

pytestmark = pytest.mark.asyncio

FIRST: dict[str, Any] = {"return_when": asyncio.FIRST_COMPLETED, "timeout": 60}

STRETCH = 8_000
"""Half a second."""


class Undivided:
    """An ear that judges nothing, since the client ends the turns, and understands no word."""

    activity: Any

    def __init__(self) -> None:
        self.activity = self

    def open(self) -> None:
        """No model is needed."""

    def reset(self) -> None:
        """Nothing was judged."""

    async def hear(self, work: Callable[[], Any]) -> Any:
        return work()

    async def recognize(self, _sound: Any, _hints: Any) -> str:
        return ""


async def told(seconds: float, stretch: int | None) -> list[EarFinding]:
    """What a listener tells of an undivided turn."""
    findings: list[EarFinding] = []
    committed = asyncio.Event()

    def tell(finding: EarFinding) -> None:
        findings.append(finding)
        if isinstance(finding, Heard):
            committed.set()

    ear: Any = Undivided()
    listener = Listener(ear, EarSensitivity(), tell, stretch=stretch)
    listener.configure(HearingRules("none"))
    noise = np.random.default_rng(0).normal(0, 0.1, int(24_000 * seconds))
    data = (noise * 32767).astype("<i2").tobytes()
    for at in range(0, len(data), 4800):
        listener.append(data[at : at + 4800], WireFormat.PCM, guarded=False)
    listener.commit("item", 0, int(48_000 * seconds))
    await asyncio.wait({listener.task, asyncio.create_task(committed.wait())}, **FIRST)
    assert not listener.task.done(), listener.task.exception()
    await listener.close()
    return findings


async def test_each_stretch_is_told_from_the_beginning_on() -> None:
    findings = await told(3.2, STRETCH)
    (whole,) = [finding.samples for finding in findings if isinstance(finding, Heard)]
    said = [finding.samples for finding in findings if isinstance(finding, SaidSoFar)]
    assert [len(samples) // STRETCH for samples in said] == [1, 2, 3, 4, 5, 6]
    for samples in said:
        assert np.array_equal(samples, whole[: len(samples)])


async def test_a_long_turn_is_looked_at_more_seldom() -> None:
    """All of it is looked at each time: over a turn that grows with its length, not its square."""
    said = [f.samples for f in await told(60.0, STRETCH) if isinstance(f, SaidSoFar)]
    stretches = [len(samples) // STRETCH for samples in said]
    assert stretches[:16] == list(range(1, 17))
    assert stretches[-1] > 100
    assert sum(stretches) < 12 * stretches[-1]


async def test_where_nobody_wants_to_know_nothing_is_told() -> None:
    assert not any(isinstance(finding, SaidSoFar) for finding in await told(2.0, None))
