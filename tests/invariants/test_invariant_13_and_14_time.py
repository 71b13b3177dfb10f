"""13: the event loop never computes. 14: nothing polls, and nothing sleeps to wait."""

from __future__ import annotations

import ast
import asyncio
import time
from pathlib import Path

import pytest

from engine import TextInput
from engine.engine import AsyncOmniEngine
from tests.toys import Toy, busy_share, collect, request, until_idle

ENGINE = Path(__file__).parents[2] / "engine"


@pytest.mark.asyncio
async def test_invariant_13_a_step_that_takes_long_does_not_hold_the_event_loop(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    """A step that never ends: the loop goes on, answers health, takes and refuses requests."""
    toy.gate.clear()
    speaking = asyncio.ensure_future(collect(engine, request("a", "held in a step")))
    longest = 0.0
    last = time.monotonic()
    for _ in range(2000):
        await asyncio.sleep(0)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        assert engine.health().running <= 1
    assert not speaking.done()
    waiting = [engine.abort("a"), collect(engine, request("b", "x"))]
    tasks = [asyncio.ensure_future(task) for task in waiting]
    await asyncio.sleep(0)
    toy.gate.set()
    await asyncio.gather(speaking, *tasks)
    assert longest < 0.5


@pytest.mark.asyncio
async def test_invariant_14_an_idle_engine_uses_no_processor(engine: AsyncOmniEngine) -> None:
    await collect(engine, request("a", "something to have done"))
    await until_idle(engine)
    assert await busy_share(engine, seconds=1.0) < 0.005


@pytest.mark.asyncio
async def test_invariant_14_a_request_without_text_uses_no_processor(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("a", text)))
    await text.write("begun")
    await until_idle(engine)
    assert await busy_share(engine, seconds=0.5) < 0.01
    text.close()
    await speaking


@pytest.mark.asyncio
async def test_invariant_14_a_deadline_wakes_the_engine_when_it_is_due(
    engine: AsyncOmniEngine,
) -> None:
    started = time.monotonic()
    chunks = await collect(engine, request("a", TextInput(), deadline=0.3))
    assert 0.3 <= time.monotonic() - started < 2.0
    assert chunks[-1].error is not None


@pytest.mark.parametrize("path", sorted(ENGINE.glob("*.py")), ids=lambda path: path.stem)
def test_invariant_14_the_engine_never_sleeps_to_wait(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        assert name != "sleep", f"{path.name}:{getattr(node, 'lineno', 0)} sleeps"
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "sleep" for alias in node.names), path.name
