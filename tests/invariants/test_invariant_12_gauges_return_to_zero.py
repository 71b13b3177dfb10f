"""12: after a storm of disconnects nothing is left: no request, edge, ticket, task or memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
import tracemalloc
import weakref
from itertools import pairwise

import psutil
import pytest

from engine import EngineOverloadedError, TextInput
from engine.engine import AsyncOmniEngine
from engine.live_request import LiveRequest
from tests.toys import ADAPTER_FAULT, Toy, assert_empty, collect, request, until_idle

pytestmark = pytest.mark.asyncio

TEXT = "somebody who may leave at any moment, or stay until the end of it all"


async def visit(engine: AsyncOmniEngine, name: str, chance: random.Random) -> None:
    """One client that does anything a client may do, and leaves in any way."""
    text = TextInput()
    deadline = chance.choice([None, None, None, 0.0, 0.005, 0.05])
    session = chance.choice([None, None, f"session {chance.randrange(3)}"])
    wanted = request(name, text, deadline=deadline, session=session, tenant=chance.choice("abc"))

    async def write() -> None:
        for _ in range(chance.randrange(4)):
            await text.write(TEXT[: chance.randrange(len(TEXT))])
            await asyncio.sleep(0)
            if chance.random() < 0.3:
                text.flush()
        if chance.random() < 0.1:
            await text.write(ADAPTER_FAULT)
        if chance.random() < 0.5:
            text.close()

    writing = asyncio.ensure_future(write())
    leaving = chance.randrange(12)
    try:
        async with contextlib.aclosing(engine.generate(wanted)) as stream:
            async with asyncio.timeout(chance.choice([0.0, 0.001, 0.02, 0.1])):
                async for _ in stream:
                    leaving -= 1
                    if leaving < 0:
                        return
                    if chance.random() < 0.05:
                        await engine.abort(name)
                    await asyncio.sleep(0)
    except (TimeoutError, EngineOverloadedError):
        pass
    finally:
        await writing


async def storm(engine: AsyncOmniEngine, seed: int, visits: int) -> None:
    chance = random.Random(seed)
    tasks: list[asyncio.Task[None]] = []
    for index in range(visits):
        tasks.append(asyncio.ensure_future(visit(engine, f"{seed}-{index}", chance)))
        if chance.random() < 0.3:
            await asyncio.sleep(0)
        if chance.random() < 0.2:
            chance.choice(tasks).cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        assert result is None or isinstance(result, asyncio.CancelledError), result


async def memory(engine: AsyncOmniEngine, toy: Toy) -> int:
    """Bytes that objects hold once nothing of the storm is left, arrays' data included."""
    for name in range(3):
        await engine.end_session(f"session {name}")
    await until_idle(engine)
    toy.stepped.clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def test_invariant_12_after_a_storm_nothing_is_left(
    engine: AsyncOmniEngine, toy: Toy, caplog: pytest.LogCaptureFixture
) -> None:
    # Records that pytest keeps hold tracebacks, and those hold what was on the stack.
    caplog.set_level(logging.CRITICAL, logger="engine.orchestrator")
    tracemalloc.start()
    try:
        await storm(engine, seed=0, visits=300)  # warms up what is made once
        held, resident = [await memory(engine, toy)], [psutil.Process().memory_info().rss]
        for seed in range(1, 5):
            await storm(engine, seed, visits=300)
            held.append(await memory(engine, toy))
            resident.append(psutil.Process().memory_info().rss)
    finally:
        tracemalloc.stop()
    await assert_empty(engine)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [thing for thing in gc.get_objects() if isinstance(thing, LiveRequest)] == []
    # What is kept of each visit shows in every storm, whatever the allocator does with pages.
    kept = min(after - before for before, after in pairwise(held))
    assert kept < 300 * 16, f"{kept / 300:.0f} bytes are kept of each visit"
    grown = min(after - before for before, after in pairwise(resident))
    assert grown < 0.002 * resident[0], f"each storm takes {grown / 2**20:.2f} MiB more"
    assert engine.health().ready
    chunks = await collect(engine, request("after", TEXT))
    assert chunks[-1].error is None


async def test_invariant_12_a_done_request_is_forgotten_by_everyone(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    wanted = request("a", TEXT)
    text = weakref.ref(wanted.text)
    await collect(engine, wanted)
    del wanted
    await until_idle(engine)
    gc.collect()
    assert text() is None


async def test_invariant_12_metrics_have_no_series_for_each_request(
    engine: AsyncOmniEngine,
) -> None:
    for index in range(5):
        await collect(engine, request(f"r{index}", TEXT, tenant=f"t{index}", session=f"s{index}"))
    labels = {
        name: value
        for metric in engine.registry.collect()
        for sample in metric.samples
        for name, value in sample.labels.items()
    }
    assert set(labels) <= {"stage", "reason", "le"}
