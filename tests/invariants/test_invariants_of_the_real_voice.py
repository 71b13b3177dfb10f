"""Invariants that only the real stages can break: Talker on a vLLM core, streaming Code2Wav."""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import torch

from engine import ErrorCode, SpeechParameters, TextInput
from engine.chunk_policy import ChunkPolicy
from engine.engine import AsyncOmniEngine
from engine.generation import GenerationItem
from pipelines.lark.pipeline import AUDIO_CAPACITY, CODE_CAPACITY, PIPELINE
from pipelines.lark.stretch import split_speed
from tests.toys import (
    assert_empty,
    assert_one_terminal,
    collect,
    on_engine_thread,
    request,
    sound,
    started,
    until,
    until_idle,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "The quick brown fox jumps over the lazy dog."
OTHERS = [
    "Yes.",
    "One, two, three, four, five.",
    "She sells sea shells by the sea shore.",
    "It was a bright cold day in April, and the clocks were striking thirteen.",
    "Wait!",
]
LONG = " ".join(OTHERS * 2)
TOLERANCE = 1e-4


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def _nothing_is_left(voice: AsyncOmniEngine) -> AsyncIterator[None]:
    yield
    await until_idle(voice)
    await assert_empty(voice)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def alone(voice: AsyncOmniEngine) -> dict[str, np.ndarray]:
    """What each text sounds like when nobody else speaks."""
    return {text: sound(await collect(voice, request("alone", text))) for text in (TEXT, *OTHERS)}


def assert_same(heard: np.ndarray, expected: np.ndarray) -> None:
    assert heard.shape == expected.shape
    assert float(np.abs(heard - expected).max()) <= TOLERANCE


def talker(engine: AsyncOmniEngine, index: int = 0) -> Any:
    return engine._runtimes[0].slots[index].replica


def code2wav(engine: AsyncOmniEngine) -> Any:
    return engine._runtimes[1].slots[0].replica


@contextlib.contextmanager
def decoded(engine: AsyncOmniEngine) -> Iterator[dict[int, list[Any]]]:
    """The items of every step of Code2Wav, by the request's state."""
    seen: dict[int, list[Any]] = {}
    replica = code2wav(engine)
    module = replica.module

    class Watching:
        sample_rate, unit_samples = module.sample_rate, module.unit_samples
        open = module.open

        def step(self, items: list[Any]) -> list[np.ndarray]:
            for item in items:
                seen.setdefault(id(item.state), []).append(item)
            return module.step(items)

    replica.module = Watching()
    try:
        yield seen
    finally:
        replica.module = module


@pytest.mark.parametrize("speed", [1.0, 2.7])
@pytest.mark.parametrize(
    ("first", "maximum", "growth"), [(1, 1, 2.0), (3, 7, 1.1), (8, 64, 1.6), (90, 96, 1.5)]
)
async def test_invariant_09_streamed_samples_are_those_of_one_decode(
    voice: AsyncOmniEngine, first: int, maximum: int, growth: float, speed: float
) -> None:
    text = OTHERS[1]
    scheduler = code2wav(voice).scheduler
    kept = scheduler.policy
    scheduler.policy = ChunkPolicy(first, maximum, growth, kept.unit_seconds)
    try:
        with decoded(voice) as steps:
            parameters = SpeechParameters(speed=speed)
            chunks = await collect(voice, request("a", text, parameters=parameters))
    finally:
        scheduler.policy = kept
    (items,) = steps.values()
    frames = torch.cat([part for item in items for part in item.data])
    module = code2wav(voice).module
    state = module.open(SpeechParameters(speed=speed))
    (whole,) = module.step([GenerationItem(state, (frames,), final=True)])
    _, shortening = split_speed(speed)
    assert len(whole) == pytest.approx(len(frames) * module.unit_samples / shortening, abs=1200)
    assert len(whole) > 10_000
    assert_same(sound(chunks), whole)
    if maximum < 96:
        assert len(items) > len(frames) / max(maximum, 40)


async def test_invariant_09_text_in_pieces_sounds_like_the_whole_text(
    voice: AsyncOmniEngine, alone: dict[str, np.ndarray]
) -> None:
    text = TextInput()
    speaking = asyncio.ensure_future(collect(voice, request("a", text)))
    for letter in TEXT:
        await text.write(letter)
    text.close()
    assert_same(sound(await speaking), alone[TEXT])


async def test_invariant_10_the_same_alone_and_among_others_that_come_and_go(
    voice: AsyncOmniEngine, alone: dict[str, np.ndarray]
) -> None:
    chance = random.Random(0)
    done = asyncio.Event()

    async def come_and_go(index: int) -> None:
        while not done.is_set():
            text = chance.choice(OTHERS)
            stay = chance.randrange(8)
            stream = voice.generate(request(f"other {index}", text))
            async with contextlib.aclosing(stream):
                async for _ in stream:
                    stay -= 1
                    if stay < 0 or done.is_set():
                        break

    others = [asyncio.ensure_future(come_and_go(index)) for index in range(15)]
    await until(voice, lambda orchestrator: len(orchestrator.live) >= 10)
    among = sound(await collect(voice, request("a", TEXT)))
    done.set()
    await asyncio.gather(*others)
    assert_same(among, alone[TEXT])


async def test_invariant_10_everyone_in_a_full_batch_sounds_as_alone(
    voice: AsyncOmniEngine, alone: dict[str, np.ndarray]
) -> None:
    texts = [TEXT, *OTHERS] * 3
    results = await asyncio.gather(
        *(collect(voice, request(f"r{i}", text)) for i, text in enumerate(texts))
    )
    for text, chunks in zip(texts, results, strict=True):
        assert_one_terminal(chunks)
        assert_same(sound(chunks), alone[text])


async def test_invariant_05_a_stalled_client_holds_the_talker_and_loses_nothing(
    voice: AsyncOmniEngine, alone: dict[str, np.ndarray]
) -> None:
    whole = sound(await collect(voice, request("whole", LONG)))
    stream = voice.generate(request("stalled", LONG))

    def taken(_: object) -> int:
        return len(talker(voice).requests["stalled"].feed.codes)

    async with contextlib.aclosing(stream):
        chunks = [await anext(stream)]
        await until_idle(voice)
        steps = await on_engine_thread(voice, taken)
        blocks = await on_engine_thread(voice, lambda _: talker(voice).key_value_blocks_in_use())
        live = await on_engine_thread(voice, lambda orchestrator: orchestrator.live["stalled"])
        edges = [live.intakes["code2wav"].transfer, *live.client]
        assert [
            edge.in_flight <= limit
            for edge, limit in zip(edges, (CODE_CAPACITY, AUDIO_CAPACITY), strict=True)
        ] == [True, True]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for index in range(3):
            other = await collect(voice, request(f"other {index}", TEXT))
            assert_same(sound(other), alone[TEXT])
        assert await on_engine_thread(voice, taken) == steps
        after = await on_engine_thread(voice, lambda _: talker(voice).key_value_blocks_in_use())
        assert after == blocks > 0
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
        chunks += [chunk async for chunk in stream]
    assert_one_terminal(chunks)
    assert_same(sound(chunks), whole)


@pytest.mark.parametrize("steps", [0, 1, 10])
async def test_invariant_06_a_cancelled_request_leaves_the_core_at_once(
    voice: AsyncOmniEngine, steps: int
) -> None:
    beside = asyncio.ensure_future(collect(voice, request("beside", TEXT)))
    speaking = asyncio.ensure_future(collect(voice, request("a", LONG)))

    def far_enough(_: object) -> bool:
        known = talker(voice).requests.get("a")
        return known is not None and len(known.feed.codes) >= steps

    await until(voice, far_enough)
    await voice.abort("a")

    def inside(_: object) -> list[str]:
        replica = talker(voice)
        scheduler = replica.scheduler
        places = {
            "requests": replica.requests,
            "feeds": replica.feeds._feeds,
            "core": scheduler.requests,
            "running": [r.request_id for r in scheduler.running],
            "waiting": [r.request_id for r in scheduler.waiting],
        }
        return [name for name, place in places.items() if "a" in place]

    assert await on_engine_thread(voice, inside) == []
    chunks = await speaking
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert chunks[-1].error.code is ErrorCode.CANCELLED
    assert (await beside)[-1].error is None
    await until_idle(voice)
    runner = talker(voice).core.model_executor.driver_worker.worker.model_runner
    assert "a" not in runner.input_batch.req_id_to_index


async def test_invariant_12_a_storm_of_disconnects_leaves_no_block_and_no_feed(
    voice: AsyncOmniEngine,
) -> None:
    chance = random.Random(1)

    async def visit(index: int) -> None:
        stay = chance.choice([0.0, 0.001, 0.01, 0.05, 0.2])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(stay):
                await collect(voice, request(f"v{index}", chance.choice([TEXT, *OTHERS, LONG])))

    async def storm(visits: range) -> None:
        tasks = []
        for index in visits:
            tasks.append(asyncio.ensure_future(visit(index)))
            if chance.random() < 0.6:
                await asyncio.sleep(chance.random() / 50)
        await asyncio.gather(*tasks)

    await storm(range(60))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await storm(range(60, 260))
    await until_idle(voice)
    await assert_empty(voice)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 24 * 1024, f"{grown} KiB more"


async def test_invariant_13_the_event_loop_stays_free_while_eight_speak(
    voice: AsyncOmniEngine,
) -> None:
    lags: list[float] = []

    async def heartbeat() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            lags.append(time.monotonic() - before - 0.005)

    beating = asyncio.ensure_future(heartbeat())
    clock = time.pthread_getcpuclockid(voice._host._thread.ident)
    engine_before, loop_before = time.clock_gettime(clock), time.thread_time()
    await asyncio.gather(*(collect(voice, request(f"r{i}", TEXT)) for i in range(8)))
    engine_time = time.clock_gettime(clock) - engine_before
    loop_time = time.thread_time() - loop_before
    beating.cancel()
    assert statistics.median(lags) < 0.1
    assert loop_time < engine_time / 4


async def test_invariant_11_a_core_that_raises_is_replaced_and_the_other_one_serves_on(
    voice: AsyncOmniEngine, alone: dict[str, np.ndarray], tmp_path: Path
) -> None:
    deployment = {
        "stages": {
            "talker": {"replicas": 2, "key_value_cache_bytes": 24 * 2**20},
            "code2wav": {"input_limit": 96},
        }
    }
    async with started(PIPELINE, tmp_path, deployment) as engine:
        texts = [TextInput() for _ in range(4)]
        speaking = [
            asyncio.ensure_future(collect(engine, request(f"r{i}", text)))
            for i, text in enumerate(texts)
        ]
        await until(engine, lambda orchestrator: len(orchestrator.live) == 4)
        placed = dict(engine._runtimes[0]._placed)

        def broken() -> None:
            raise RuntimeError("this core is broken")

        bad = placed["r0"]
        talker(engine, bad.index).core.step_fn = broken
        for text in texts:
            await text.write(TEXT)
            text.close()
        results = await asyncio.gather(*speaking)
        for index, chunks in enumerate(results):
            assert_one_terminal(chunks)
            if placed[f"r{index}"] is bad:
                assert chunks[-1].error is not None
                assert chunks[-1].error.code is ErrorCode.STAGE_FAILED
                assert chunks[-1].error.stage == "talker"
            else:
                assert_same(sound(chunks), alone[TEXT])
        assert sum(chunks[-1].error is None for chunks in results) == 2
        assert engine.health().ready
        again = await asyncio.gather(
            *(collect(engine, request(f"again {i}", TEXT)) for i in range(4))
        )
        for chunks in again:
            assert_same(sound(chunks), alone[TEXT])
        await until_idle(engine)
        await assert_empty(engine)


async def test_invariant_08_more_text_than_a_request_may_have_steps_is_an_error_not_an_end(
    voice: AsyncOmniEngine,
) -> None:
    replica = talker(voice)
    most = replica.settings.max_steps
    object.__setattr__(replica.settings, "max_steps", 40)
    try:
        chunks = await collect(voice, request("a", LONG))
    finally:
        object.__setattr__(replica.settings, "max_steps", most)
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert chunks[-1].error.code is ErrorCode.INVALID_REQUEST
    assert "longer than the 39 steps" in chunks[-1].error.message
