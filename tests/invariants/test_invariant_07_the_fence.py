"""7: after a replacement is acknowledged not one chunk of an older epoch can be read."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import (
    Chunk,
    EngineError,
    ErrorCode,
    InvalidRequestError,
    SpeechParameters,
    TextInput,
)
from engine.engine import AsyncOmniEngine
from tests.toys import (
    DEPLOYMENT,
    Generate,
    Toy,
    assert_empty,
    assert_one_terminal,
    collect,
    on_engine_thread,
    request,
    samples_of,
    sound,
    started,
    until,
    until_idle,
)

pytestmark = pytest.mark.asyncio

LONG = "what was said before the interruption " * 20


@pytest.mark.parametrize(
    "text", ["short", "fits into the client's edge", LONG], ids=["made", "made whole", "stalled"]
)
@pytest.mark.parametrize("read", [1, 2])
async def test_invariant_07_what_was_not_read_is_gone(
    engine: AsyncOmniEngine, text: str, read: int
) -> None:
    """Also when the older request was made to its end: its chunks wait in the client's edge."""
    older = engine.generate(request("older", text, session="s"))
    async with contextlib.aclosing(older):
        before = [await anext(older)]
        while len(before) < read and not before[-1].final:
            before.append(await anext(older))
        await until_idle(engine)
        newer = await collect(engine, request("newer", "newer", session="s"))
        after = [chunk async for chunk in older]
    assert {chunk.epoch for chunk in newer} == {1}
    assert np.array_equal(sound(newer), samples_of("newer"))
    assert {chunk.epoch for chunk in before} == {0}
    assert len(sound(after)) == 0
    if not before[-1].final:
        assert_one_terminal([*before, *after])
        assert after[-1].error is not None
        assert after[-1].error.code is ErrorCode.CANCELLED
    await assert_empty(engine)


async def test_invariant_07_the_fence_stands_with_the_first_chunk_of_the_newer(
    engine: AsyncOmniEngine,
) -> None:
    older = engine.generate(request("older", LONG, session="s"))
    newer = engine.generate(request("newer", LONG, session="s"))
    async with contextlib.aclosing(older), contextlib.aclosing(newer):
        await anext(older)
        first = await anext(newer)
        assert first.epoch == 1
        last = await anext(older)
        assert last.final
        assert last.payload is None
    await assert_empty(engine)


async def test_invariant_07_a_reader_that_runs_beside_hears_nothing_old(
    engine: AsyncOmniEngine,
) -> None:
    """Many replacements while readers run: after epoch n was heard, none hears less."""
    heard: list[Chunk] = []
    rounds = 30

    async def speak(index: int) -> None:
        async with contextlib.aclosing(
            engine.generate(request(f"r{index}", LONG, session="s"))
        ) as stream:
            async for chunk in stream:
                heard.append(chunk)

    tasks = []
    for index in range(rounds):
        tasks.append(asyncio.ensure_future(speak(index)))
        await until(engine, lambda orchestrator: bool(orchestrator.live))
        for _ in range(index % 5):
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    epochs = [chunk.epoch for chunk in heard if chunk.payload is not None]
    assert epochs == sorted(epochs)
    assert np.array_equal(
        sound([chunk for chunk in heard if chunk.epoch == rounds - 1]), samples_of(LONG)
    )
    await assert_empty(engine)


async def test_invariant_07_other_sessions_are_not_touched(engine: AsyncOmniEngine) -> None:
    one = asyncio.ensure_future(collect(engine, request("one", LONG, session="one")))
    none = asyncio.ensure_future(collect(engine, request("none", LONG)))
    for index in range(5):
        await collect(engine, request(f"two {index}", "x", session="two"))
    for chunks in (await one, await none):
        assert chunks[-1].error is None
        assert np.array_equal(sound(chunks), samples_of(LONG))
        assert {chunk.epoch for chunk in chunks} == {0}


async def test_invariant_07_the_older_one_takes_no_further_step(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    text = TextInput()
    older = asyncio.ensure_future(collect(engine, request("older", text, session="s")))
    await text.write(LONG[:40])
    await until_idle(engine)
    await collect(engine, request("newer", "x", session="s"))
    taken = toy.steps_of("older")
    await text.write(LONG)
    await until_idle(engine)
    assert toy.steps_of("older") == taken
    chunks = await older
    assert chunks[-1].error is not None
    await assert_empty(engine)


async def test_invariant_07_the_end_of_a_session_is_a_fence_too(engine: AsyncOmniEngine) -> None:
    for text in ("short", LONG):
        stream = engine.generate(request("older", text, session="s"))
        async with contextlib.aclosing(stream):
            first = await anext(stream)
            await until_idle(engine)
            await engine.end_session("s")
            await engine.end_session("s")
            rest = [chunk async for chunk in stream]
        assert first.final or (rest[-1].error is not None and len(sound(rest)) == 0)
    await assert_empty(engine)
    left = await on_engine_thread(
        engine, lambda orchestrator: (dict(orchestrator.sessions), dict(orchestrator.epochs))
    )
    assert left == ({}, {})
    chunks = await collect(engine, request("again", "x", session="s"))
    assert chunks[0].epoch == 0


async def test_invariant_07_a_failed_opening_keeps_the_session_usable(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    toy.adapter_refuses = "refused"
    stream = engine.generate(request("older", LONG, session="s"))
    async with contextlib.aclosing(stream):
        await anext(stream)
        with pytest.raises(EngineError):
            await collect(
                engine,
                request("refused", "x", session="s", parameters=SpeechParameters(voice="refused")),
            )
    await assert_empty(engine)
    chunks = await collect(engine, request("newer", "x", session="s"))
    assert chunks[-1].error is None
    assert chunks[0].epoch == 2


async def test_invariant_07_a_replacement_begins_after_the_older_is_out_of_every_stage(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    older = engine.generate(request("older", LONG, session="s"))
    async with contextlib.aclosing(older):
        before = [await anext(older)]
        await until_idle(engine)
        toy.gate.clear()
        newer = asyncio.ensure_future(collect(engine.replace, request("newer", "x", session="s")))
        toy.gate.set()
        chunks = await newer
        after = [chunk async for chunk in older]
    assert chunks[-1].error is None
    assert {chunk.epoch for chunk in chunks} == {1}
    assert np.array_equal(sound(chunks), samples_of("x"))
    assert_one_terminal([*before, *after])
    assert len(sound(after)) == 0
    first = next(index for index, step in enumerate(toy.stepped) if step[0] == "newer")
    assert "older" not in [name for name, _ in toy.stepped[first:]]
    reasons = "antiphon_requests_aborted_total"
    assert engine.registry.get_sample_value(reasons, {"reason": "replaced"}) == 1
    await assert_empty(engine)


async def test_invariant_07_a_replacement_takes_over_the_turn_and_does_not_wait_in_line(
    toy: Toy, tmp_path: Path
) -> None:
    deployment = {**DEPLOYMENT, "admission": {"max_running": 1, "max_waiting": 8}}
    async with started(toy.pipeline, tmp_path, deployment) as engine:
        older = engine.generate(request("older", TextInput(), session="s"))
        reading = asyncio.ensure_future(anext(older))
        await until(engine, lambda orchestrator: "older" in orchestrator.live)
        waits = asyncio.ensure_future(collect(engine, request("waits", "w", tenant="another")))
        await until(engine, lambda _: engine.health().waiting == 1)
        newer = await asyncio.wait_for(
            collect(engine.replace, request("newer", "n", session="s")), 5
        )
        assert newer[-1].error is None
        assert np.array_equal(sound(newer), samples_of("n"))
        last = await reading
        assert last.error is not None
        assert last.error.code is ErrorCode.CANCELLED
        await older.aclose()
        assert np.array_equal(sound(await waits), samples_of("w"))
        await assert_empty(engine)


async def test_invariant_07_a_replacement_takes_the_place_of_one_that_waits(
    toy: Toy, tmp_path: Path
) -> None:
    deployment = {**DEPLOYMENT, "admission": {"max_running": 1, "max_waiting": 2}}
    async with started(toy.pipeline, tmp_path, deployment) as engine:
        text = TextInput()
        runs = asyncio.ensure_future(collect(engine, request("runs", text)))
        await until(engine, lambda orchestrator: "runs" in orchestrator.live)
        ends: list[str] = []

        async def line(name: str, generate: Generate, **others: Any) -> list[Chunk]:
            chunks = await collect(generate, request(name, name, **others))
            ends.append(name)
            return chunks

        older = asyncio.ensure_future(line("older", engine.generate, session="s"))
        await until(engine, lambda _: engine.health().waiting == 1)
        behind = asyncio.ensure_future(line("behind", engine.generate))
        await until(engine, lambda _: engine.health().waiting == 2)
        newer = asyncio.ensure_future(line("newer", engine.replace, session="s"))
        refused = (await older)[-1].error
        assert refused is not None
        assert refused.code is ErrorCode.CANCELLED
        assert engine.health().waiting == 2, "the line is as long as it was"
        text.close()
        await runs
        assert (await newer)[-1].error is None
        assert (await behind)[-1].error is None
        assert ends == ["older", "newer", "behind"]
        await assert_empty(engine)


async def test_invariant_07_a_replacement_that_is_wrong_leaves_the_older_alone(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("older", text, session="s")))
    await until(engine, lambda orchestrator: "older" in orchestrator.live)
    wrong = SpeechParameters(voice="nobody")
    with pytest.raises(InvalidRequestError, match="nobody"):
        await collect(engine.replace, request("newer", "x", session="s", parameters=wrong))
    with pytest.raises(InvalidRequestError, match="session is None"):
        await collect(engine.replace, request("newer", "x"))
    await text.write("ab")
    text.close()
    assert np.array_equal(sound(await speaking), samples_of("ab"))
    await assert_empty(engine)


async def test_invariant_07_replacements_in_a_row_end_each_other_and_the_last_one_speaks(
    engine: AsyncOmniEngine,
) -> None:
    tasks = [
        asyncio.ensure_future(collect(engine.replace, request(f"r{i}", LONG, session="s")))
        for i in range(12)
    ]
    results = await asyncio.wait_for(asyncio.gather(*tasks), 20)
    for chunks in results[:-1]:
        assert_one_terminal(chunks)
        assert chunks[-1].error is not None
    assert np.array_equal(sound(results[-1]), samples_of(LONG))
    await assert_empty(engine)
