"""5: a client that does not read stops the stages, and memory stays where it is."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import numpy as np
import pytest

from engine import EngineOverloadedError, ErrorCode, TextInput
from engine.engine import AsyncOmniEngine
from engine.orchestrator import Orchestrator
from tests.toys import (
    SOUND_CAPACITY,
    STEP_CAPACITY,
    UNIT,
    Toy,
    assert_empty,
    assert_one_terminal,
    collect,
    on_engine_thread,
    request,
    samples_of,
    sound,
    turns_taken,
    until,
    until_idle,
)

pytestmark = pytest.mark.asyncio

LONG = "".join(chr(97 + i % 26) for i in range(3000))
HELD = SOUND_CAPACITY // UNIT + STEP_CAPACITY + 32 + 4
"""The most characters that edges and stages may hold for a client that does not read."""


async def test_invariant_05_a_stalled_client_stops_the_stages_and_gets_the_same_sound(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    stream = engine.generate(request("stalled", LONG))
    async with contextlib.aclosing(stream):
        chunks = [await anext(stream)]
        await until_idle(engine)
        taken, voiced = toy.steps_of("stalled"), toy.voice_steps
        assert taken <= HELD + len(sound(chunks)) // UNIT
        # Others are served as ever, and the stalled one takes no step meanwhile.
        for index in range(5):
            other = await collect(engine, request(f"other {index}", LONG[:100]))
            assert np.array_equal(sound(other), samples_of(LONG[:100]))
        await until_idle(engine)
        assert toy.steps_of("stalled") == taken
        assert toy.voice_steps > voiced
        chunks += [chunk async for chunk in stream]
    assert_one_terminal(chunks)
    assert np.array_equal(sound(chunks), samples_of(LONG))
    await assert_empty(engine)


async def test_invariant_05_every_edge_holds_at_most_its_capacity(
    engine: AsyncOmniEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at after every single thing that the control plane does."""
    most: dict[str, int] = {}

    def watched(name: str) -> Any:
        original = getattr(Orchestrator, name)

        def call(self: Orchestrator, *arguments: Any) -> Any:
            result = original(self, *arguments)
            for live in self.live.values():
                edges = [i.transfer for i in live.intakes.values()] + live.client
                for edge in edges:
                    key = f"{edge.key.source}>{edge.key.target}"
                    most[key] = max(most.get(key, 0), edge.in_flight)
            return result

        return call

    for name in ("pump", "execute"):
        monkeypatch.setattr(Orchestrator, name, watched(name))

    async def reading(name: str, pause: int) -> None:
        async with contextlib.aclosing(engine.generate(request(name, LONG[:600]))) as stream:
            async for _ in stream:
                for _ in range(pause):
                    await asyncio.sleep(0)

    stalled = engine.generate(request("stalled", LONG))
    async with contextlib.aclosing(stalled):
        await anext(stalled)
        await asyncio.gather(*(reading(f"r{i}", 3 * i) for i in range(8)))
        await until_idle(engine)
    assert most["steps>voice"] <= STEP_CAPACITY
    assert most["voice>"] <= SOUND_CAPACITY
    assert most["voice>"] > SOUND_CAPACITY // 2
    await assert_empty(engine)


async def test_invariant_05_a_stalled_client_costs_no_computing(engine: AsyncOmniEngine) -> None:
    """The engine thread sleeps although requests are live: nothing is tried again and again."""
    stream = engine.generate(request("stalled", LONG))
    async with contextlib.aclosing(stream):
        await anext(stream)
        await until_idle(engine)
        assert await turns_taken(engine, seconds=0.3) <= 3, "it waits for credit, asleep"


async def test_invariant_05_the_line_is_bounded_and_what_is_above_it_refused_at_once(
    engine: AsyncOmniEngine,
) -> None:
    texts = [TextInput() for _ in range(24 + 512)]
    speaking = [
        asyncio.ensure_future(collect(engine, request(f"r{i}", text)))
        for i, text in enumerate(texts)
    ]
    await until(engine, lambda _: engine.health().waiting == 512)
    with pytest.raises(EngineOverloadedError) as refused:
        await asyncio.wait_for(collect(engine, request("too many", "x")), 5)
    assert refused.value.retry_after == 2.0
    assert await on_engine_thread(engine, lambda orchestrator: len(orchestrator.live)) == 24
    for text in texts:
        text.close()
    for chunks in await asyncio.gather(*speaking):
        assert_one_terminal(chunks)
    await assert_empty(engine)


async def test_invariant_05_who_waits_too_long_is_told_so_and_leaves_the_line(
    engine: AsyncOmniEngine,
) -> None:
    texts = [TextInput() for _ in range(24)]
    speaking = [
        asyncio.ensure_future(collect(engine, request(f"r{i}", text)))
        for i, text in enumerate(texts)
    ]
    await until(engine, lambda _: engine.health().running == 24)
    late = await asyncio.wait_for(collect(engine, request("late", "x", deadline=0.05)), 5)
    assert_one_terminal(late)
    assert late[-1].error is not None
    assert late[-1].error.code is ErrorCode.DEADLINE_EXCEEDED, "the same as while it runs"
    assert engine.health().waiting == 0
    for text in texts:
        text.close()
    await asyncio.gather(*speaking)
    await assert_empty(engine)


async def test_invariant_05_text_flushes_and_pieces_for_a_stalled_client_do_not_pile_up(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    stream = engine.generate(request("stalled", text))
    async with contextlib.aclosing(stream):
        await text.write(LONG)
        await anext(stream)
        await until_idle(engine)
        for _ in range(5000):
            text.flush()
            await text.write("")

        def waiting(orchestrator: Orchestrator) -> int:
            key = orchestrator.live["stalled"].entry.key
            return len(engine._connector._channels[key].chunks)

        assert await on_engine_thread(engine, waiting) <= 2
