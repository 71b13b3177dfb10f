"""11: a request's fault ends that request, a dead replica is replaced, others serve on."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import numpy as np
import pytest

from engine import EngineError, ErrorCode, SpeechParameters, StageStatus, TextInput
from engine.engine import AsyncOmniEngine
from tests.toys import (
    ADAPTER_FAULT,
    DEPLOYMENT,
    INPUT_FAULT,
    ODD_FAULT,
    OPEN_FAULT,
    STEP_FAULT,
    VOICE_FAULT,
    Toy,
    assert_empty,
    assert_one_terminal,
    collect,
    on_engine_thread,
    request,
    samples_of,
    sound,
    started,
    turns_taken,
    until,
    until_idle,
)

pytestmark = pytest.mark.asyncio

WORDS = "the words of somebody who does nothing wrong "
TWO_REPLICAS = {
    **DEPLOYMENT,
    "stages": {name: {**stage, "replicas": 2} for name, stage in DEPLOYMENT["stages"].items()},
}


async def served(engine: AsyncOmniEngine, name: str = "following") -> None:
    chunks = await collect(engine, request(name, WORDS))
    assert chunks[-1].error is None
    assert np.array_equal(sound(chunks), samples_of(WORDS))


@pytest.mark.parametrize("fault", [ADAPTER_FAULT, OPEN_FAULT])
async def test_invariant_11_a_requests_own_fault_disturbs_nobody(
    engine: AsyncOmniEngine, toy: Toy, fault: str
) -> None:
    built = list(toy.built)
    text = TextInput()
    beside = asyncio.ensure_future(collect(engine, request("beside", text)))
    await text.write(WORDS)
    await until_idle(engine)
    parameters = SpeechParameters(voice=OPEN_FAULT if fault == OPEN_FAULT else None)
    bad = await collect(engine, request("bad", "ab" + fault, parameters=parameters))
    assert_one_terminal(bad)
    assert bad[-1].error is not None
    assert bad[-1].error.code is ErrorCode.STAGE_FAILED
    text.close()
    assert np.array_equal(sound(await beside), samples_of(WORDS))
    assert toy.built == built
    await assert_empty(engine)


async def test_invariant_11_input_that_an_adapter_finds_wrong_is_its_clients_mistake(
    engine: AsyncOmniEngine, toy: Toy, caplog: pytest.LogCaptureFixture
) -> None:
    """The client is told the field and the mend; no log is filled with tracebacks."""
    built = list(toy.built)
    bad = await collect(engine, request("bad", "ab" + INPUT_FAULT))
    assert_one_terminal(bad)
    error = bad[-1].error
    assert error is not None
    assert (error.code, error.parameter) == (ErrorCode.INVALID_REQUEST, "text")
    assert error.message == "This cannot be said; leave it out."
    assert caplog.records == []
    await served(engine)
    assert toy.built == built
    await assert_empty(engine)


async def test_invariant_11_an_adapter_that_cannot_be_made_ends_its_request_and_leaks_nothing(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    toy.adapter_refuses = "refused"
    for index in range(3):
        wanted = request("bad", "x", parameters=SpeechParameters(voice="refused"))
        with pytest.raises(EngineError, match="could not be opened") as failed:
            await collect(engine, wanted)
        assert failed.value.error.code is ErrorCode.STAGE_FAILED
        await served(engine, f"after {index}")
    await assert_empty(engine)


@pytest.mark.parametrize(("fault", "stage"), [(STEP_FAULT, "steps"), (VOICE_FAULT, "voice")])
async def test_invariant_11_a_dead_replica_is_replaced_and_the_next_request_served(
    engine: AsyncOmniEngine, toy: Toy, fault: str, stage: str
) -> None:
    built = len(toy.built)
    bad = await collect(engine, request("bad", "ab" + fault))
    assert_one_terminal(bad)
    error = bad[-1].error
    assert error is not None
    assert (error.code, error.stage) == (ErrorCode.STAGE_FAILED, stage)
    await served(engine)
    assert toy.built[built:] == [stage]
    assert engine.health().ready
    restarts = "antiphon_stage_restarts_total"
    assert engine.registry.get_sample_value(restarts, {"stage": stage}) == 1
    await assert_empty(engine)


async def test_invariant_11_an_exception_that_nobody_expects_ends_no_server(
    engine: AsyncOmniEngine,
) -> None:
    bad = await asyncio.wait_for(collect(engine, request("bad", "ab" + ODD_FAULT)), 10)
    assert bad[-1].error is not None
    assert bad[-1].error.code is ErrorCode.STAGE_FAILED
    await served(engine)
    assert engine.health().ready


@pytest.mark.parametrize("fault", [STEP_FAULT, VOICE_FAULT])
async def test_invariant_11_the_same_bad_request_again_and_again_does_not_close_the_stage(
    engine: AsyncOmniEngine, fault: str
) -> None:
    for index in range(5):
        bad = await collect(engine, request(f"bad {index}", fault))
        assert bad[-1].error is not None
    assert engine.health().ready
    await served(engine)


async def test_invariant_11_with_two_replicas_the_other_ones_requests_go_on(
    toy: Toy, tmp_path: Path
) -> None:
    async with started(toy.pipeline, tmp_path, TWO_REPLICAS) as engine:
        texts = [TextInput() for _ in range(6)]
        speaking = [
            asyncio.ensure_future(collect(engine, request(f"r{i}", text)))
            for i, text in enumerate(texts)
        ]
        for text in texts:
            await text.write("ab")
        await until_idle(engine)

        def placed(orchestrator: object) -> dict[str, int]:
            return {name: slot.index for name, slot in engine._runtimes[0]._placed.items()}

        where = await on_engine_thread(engine, placed)
        assert sorted(where.values()) == [0, 0, 0, 1, 1, 1]
        await texts[0].write(STEP_FAULT)
        for text in texts[1:]:
            await text.write("cd")
            text.close()
        results = await asyncio.gather(*speaking)
        for index, chunks in enumerate(results):
            assert_one_terminal(chunks)
            if where[f"r{index}"] == where["r0"]:
                assert chunks[-1].error is not None
            else:
                assert chunks[-1].error is None
                assert np.array_equal(sound(chunks), samples_of("abcd"))
        await served(engine)
        await assert_empty(engine)


async def test_invariant_11_a_stage_that_could_not_be_restarted_comes_back_by_itself(
    engine: AsyncOmniEngine, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is away requests fail at once, and nothing spins."""
    monkeypatch.setattr("engine.stage.FIRST_RETRY_SECONDS", 1.5)
    toy.failing_builds = 2
    bad = await collect(engine, request("bad", STEP_FAULT))
    assert bad[-1].error is not None
    assert await turns_taken(engine, seconds=0.3) <= 3, "it waits for the retry, asleep"
    assert engine.health().stages["steps"] is StageStatus.FAILED
    assert not engine.health().ready
    refused = await asyncio.wait_for(collect(engine, request("refused", "x")), 5)
    assert refused[-1].error is not None
    assert refused[-1].error.stage == "steps"
    await assert_empty(engine)
    await until(engine, lambda _: engine.health().ready)
    await served(engine)
    await assert_empty(engine)


async def test_invariant_11_what_was_heard_is_not_repeated_and_what_was_not_is_freed(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    stream = engine.generate(request("a", text))
    async with contextlib.aclosing(stream):
        await text.write(WORDS)
        first = await anext(stream)
        await until_idle(engine)
        await text.write(STEP_FAULT)
        await until_idle(engine)
        rest = [chunk async for chunk in stream]
    assert_one_terminal([first, *rest])
    assert len(rest) == 1
    await assert_empty(engine)


async def test_invariant_11_an_output_that_no_edge_takes_ends_its_request(
    engine: AsyncOmniEngine,
) -> None:
    """The runtime itself stumbles over one request's output."""
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("a", text)))
    beside = asyncio.ensure_future(collect(engine, request("beside", WORDS)))
    await text.write("ab")
    await until_idle(engine)

    def break_edge(orchestrator: object) -> None:
        for transfer in engine._orchestrator.live["a"].outputs["voice"]:
            transfer.cost = lambda payload: payload.no_such_thing

    await on_engine_thread(engine, break_edge)
    await text.write("cdefgh")
    text.close()
    chunks = await asyncio.wait_for(speaking, 10)
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert np.array_equal(sound(await beside), samples_of(WORDS))
    assert engine.health().ready
    await assert_empty(engine)
