"""6: within one step of each stage a cancelled request has left every queue, batch and block."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import pytest

from engine import ErrorCode, TextInput
from engine.engine import AsyncOmniEngine
from tests.toys import (
    Toy,
    assert_empty,
    assert_one_terminal,
    collect,
    on_engine_thread,
    request,
    samples_of,
    sound,
    until,
    until_idle,
)

pytestmark = pytest.mark.asyncio

LONG = "a long text that is far from done when its listener leaves " * 20


async def test_invariant_06_before_the_first_text(engine: AsyncOmniEngine, toy: Toy) -> None:
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("a", text)))
    await until(engine, lambda orchestrator: "a" in orchestrator.live)
    await engine.abort("a")
    await assert_gone(engine, "a")
    await text.write("too late")
    text.close()
    chunks = await speaking
    assert_cancelled(chunks)
    await until_idle(engine)
    assert toy.steps_of("a") == 0
    await assert_empty(engine)


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
async def test_invariant_06_in_mid_stream(engine: AsyncOmniEngine, toy: Toy, steps: int) -> None:
    speaking = asyncio.ensure_future(collect(engine, request("a", LONG)))
    await until(engine, lambda _: toy.steps_of("a") >= steps)
    await engine.abort("a")
    await assert_gone(engine, "a")
    taken = toy.steps_of("a")
    assert_cancelled(await speaking)
    other = await collect(engine, request("b", "another"))
    assert np.array_equal(sound(other), samples_of("another"))
    assert toy.steps_of("a") == taken
    await assert_empty(engine)


async def test_invariant_06_while_a_step_runs_it_ends_with_that_step(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    speaking = asyncio.ensure_future(collect(engine, request("a", LONG)))
    await until(engine, lambda _: toy.steps_of("a") > 3)
    toy.gate.clear()
    taken = toy.steps_of("a")
    aborting = asyncio.ensure_future(engine.abort("a"))
    await asyncio.sleep(0)
    assert not aborting.done()
    toy.gate.set()
    await aborting
    assert toy.steps_of("a") <= taken + 2
    await assert_gone(engine, "a")
    assert_cancelled(await speaking)
    await assert_empty(engine)


async def test_invariant_06_after_the_last_step(engine: AsyncOmniEngine) -> None:
    """Everything is made and waits in the client's edge: it is done, not cancelled."""
    stream = engine.generate(request("a", "short"))
    async with contextlib.aclosing(stream):
        first = await anext(stream)
        await until_idle(engine)
        await engine.abort("a")
        rest = [chunk async for chunk in stream]
    assert_one_terminal([first, *rest])
    assert np.array_equal(sound([first, *rest]), samples_of("short"))
    await assert_empty(engine)


async def test_invariant_06_twice_and_unknown(engine: AsyncOmniEngine) -> None:
    speaking = asyncio.ensure_future(collect(engine, request("a", LONG)))
    await until(engine, lambda orchestrator: "a" in orchestrator.live)
    await asyncio.gather(engine.abort("a"), engine.abort("a"), engine.abort("nobody"))
    await engine.abort("a")
    assert_cancelled(await speaking)
    await engine.abort("a")
    await assert_empty(engine)


async def test_invariant_06_who_waits_for_a_turn_leaves_the_line_at_once(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    texts = [TextInput() for _ in range(24)]
    running = [
        asyncio.ensure_future(collect(engine, request(f"r{i}", text)))
        for i, text in enumerate(texts)
    ]
    await until(engine, lambda _: engine.health().running == 24)
    waiting = asyncio.ensure_future(collect(engine, request("waits", LONG)))
    behind = asyncio.ensure_future(collect(engine, request("behind", "b")))
    await until(engine, lambda _: engine.health().waiting == 2)
    await engine.abort("waits")
    assert engine.health().waiting == 1
    assert_cancelled(await waiting)
    for text in texts:
        text.close()
    await asyncio.gather(*running)
    assert np.array_equal(sound(await behind), samples_of("b"))
    assert toy.steps_of("waits") == 0
    await assert_empty(engine)


async def test_invariant_06_between_its_turn_and_its_submission(engine: AsyncOmniEngine) -> None:
    stream = engine.generate(request("a", LONG))
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await engine.abort("a")
    chunk = await first
    assert chunk.final
    assert chunk.error is not None
    await stream.aclose()
    await assert_empty(engine)


async def test_invariant_06_closing_the_stream_cancels(engine: AsyncOmniEngine, toy: Toy) -> None:
    stream = engine.generate(request("a", LONG))
    await anext(stream)
    await stream.aclose()
    await assert_gone(engine, "a")
    await assert_empty(engine)
    again = await collect(engine, request("a", "again"))
    assert np.array_equal(sound(again), samples_of("again"))


async def test_invariant_06_a_stream_that_nobody_began_costs_nothing(
    engine: AsyncOmniEngine,
) -> None:
    stream = engine.generate(request("a", LONG))
    await stream.aclose()
    await assert_empty(engine)


@pytest.mark.parametrize("turns", range(6))
async def test_invariant_06_a_task_that_is_cancelled_leaves_nothing(
    engine: AsyncOmniEngine, toy: Toy, turns: int
) -> None:
    """At whatever await the cancellation falls, with the engine busy and idle."""
    for busy in (True, False):
        if busy:
            toy.gate.clear()
            other = asyncio.ensure_future(collect(engine, request("other", "other")))
            for _ in range(10):
                await asyncio.sleep(0)
        task = asyncio.ensure_future(collect(engine, request("a", LONG)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        toy.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        if busy:
            await other
        await until_idle(engine)
        await assert_empty(engine)
    assert engine.health().ready


async def test_invariant_06_cancelled_twice_while_it_cancels(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    task = asyncio.ensure_future(collect(engine, request("a", LONG)))
    await until(engine, lambda _: toy.steps_of("a") > 3)
    toy.gate.clear()
    task.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    toy.gate.set()
    assert task.cancelled()
    await until_idle(engine)
    await assert_empty(engine)


async def test_invariant_06_an_abandoned_abort_still_aborts(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    speaking = asyncio.ensure_future(collect(engine, request("a", LONG)))
    await until(engine, lambda _: toy.steps_of("a") > 3)
    toy.gate.clear()
    aborting = asyncio.ensure_future(engine.abort("a"))
    await asyncio.sleep(0)
    aborting.cancel()
    await asyncio.wait([aborting])
    toy.gate.set()
    assert_cancelled(await asyncio.wait_for(speaking, 10))
    assert engine.health().ready
    await assert_empty(engine)


async def test_invariant_06_a_writer_that_waits_for_room_is_let_go(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("a", text)))

    async def write() -> None:
        for _ in range(8):
            await text.write("x" * 400_000)

    writing = asyncio.ensure_future(write())
    await until(engine, lambda orchestrator: "a" in orchestrator.live)
    await until(engine, lambda _: not text._room.is_set())
    assert not writing.done()
    await engine.abort("a")
    assert_cancelled(await speaking)
    await asyncio.wait_for(writing, 10)
    await assert_empty(engine)


async def assert_gone(engine: AsyncOmniEngine, name: str) -> None:
    """Nothing inside the engine knows the request any more."""

    def places(orchestrator: object) -> list[str]:
        found = [key.source for key in engine._connector._channels if key.request == name]
        for runtime in engine._runtimes:
            if name in runtime._placed:
                found.append(f"placed on {runtime.name}")
            for slot in runtime.slots:
                if name in slot.requests or name in slot.replica.requests:
                    found.append(runtime.name)
        return found

    # The client's own edge stays until it has read the last chunk.
    assert set(await on_engine_thread(engine, places)) <= {"voice"}


def assert_cancelled(chunks: list) -> None:
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert chunks[-1].error.code is ErrorCode.CANCELLED
