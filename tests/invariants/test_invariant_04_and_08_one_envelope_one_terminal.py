"""4: gapless numbers, one final chunk, failures at once. 8: every request ends exactly once."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import pytest

from engine import (
    EngineClosedError,
    EngineOverloadedError,
    ErrorCode,
    InvalidRequestError,
    SpeechParameters,
    TextInput,
)
from engine.engine import AsyncOmniEngine
from tests.toys import (
    ADAPTER_FAULT,
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
    until,
    until_idle,
)

pytestmark = pytest.mark.asyncio

TEXT = "one envelope and one terminal, whatever happens"


async def test_invariant_04_a_stream_is_numbered_addressed_and_ends_once(
    engine: AsyncOmniEngine,
) -> None:
    chunks = await collect(engine, request("a", TEXT))
    assert_one_terminal(chunks)
    assert {(c.request, c.epoch, c.stage) for c in chunks} == {("a", 0, "voice")}
    assert chunks[-1].error is None
    assert np.array_equal(sound(chunks), samples_of(TEXT))
    assert len(chunks) > 1
    await assert_empty(engine)


@pytest.mark.parametrize("fault", [ADAPTER_FAULT, STEP_FAULT, VOICE_FAULT])
@pytest.mark.parametrize("before", [0, 1, 20])
async def test_invariant_04_a_failure_is_a_final_chunk_with_an_error(
    engine: AsyncOmniEngine, fault: str, before: int
) -> None:
    chunks = await collect(engine, request("a", "x" * before + fault + "never"))
    assert_one_terminal(chunks)
    error = chunks[-1].error
    assert error is not None
    assert error.code is ErrorCode.STAGE_FAILED
    assert error.stage in ("steps", "voice")
    heard = sound(chunks)
    assert np.array_equal(heard, samples_of("x" * before)[: len(heard)])
    await assert_empty(engine)


async def test_invariant_04_a_failure_does_not_wait_for_the_client_to_read(
    engine: AsyncOmniEngine,
) -> None:
    """What was made and not read is dropped: the error is the next thing that is read."""
    text = TextInput()
    await text.write("x" * 30)
    stream = engine.generate(request("a", text))
    async with contextlib.aclosing(stream):
        first = await anext(stream)
        await text.write(ADAPTER_FAULT)
        await until_idle(engine)
        rest = [chunk async for chunk in stream]
    assert_one_terminal([first, *rest])
    assert len(rest) == 1
    assert rest[0].error is not None


async def test_invariant_04_a_voice_that_cannot_be_opened_is_an_error_chunk(
    engine: AsyncOmniEngine,
) -> None:
    parameters = SpeechParameters(voice=OPEN_FAULT)
    chunks = await collect(engine, request("a", TEXT, parameters=parameters))
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert chunks[-1].error.stage == "voice"
    await assert_empty(engine)


async def test_invariant_08_silent_and_empty_texts_end_too(engine: AsyncOmniEngine) -> None:
    chunks = await collect(engine, request("a", ""))
    assert_one_terminal(chunks)
    assert chunks[-1].error is None
    assert len(sound(chunks)) == 0
    await assert_empty(engine)


@pytest.mark.parametrize("pieces", [["a"], ["a", "", "b"], ["", "a"], list("letter by letter")])
async def test_invariant_08_text_that_comes_in_pieces_is_spoken_whole(
    engine: AsyncOmniEngine, pieces: list[str]
) -> None:
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("a", text)))
    text.flush()
    for piece in pieces:
        await text.write(piece)
        text.flush()
        await until_idle(engine)
    text.close()
    chunks = await speaking
    assert_one_terminal(chunks)
    assert np.array_equal(sound(chunks), samples_of("".join(pieces)))
    await assert_empty(engine)


async def test_invariant_08_text_that_closes_before_its_turn_is_spoken(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    await text.write("early")
    text.close()
    chunks = await collect(engine, request("a", text))
    assert np.array_equal(sound(chunks), samples_of("early"))


async def test_invariant_08_a_text_that_never_ends_is_ended_by_its_deadline(
    engine: AsyncOmniEngine,
) -> None:
    text = TextInput()
    await text.write("begun")
    chunks = await asyncio.wait_for(collect(engine, request("a", text, deadline=0.2)), 10)
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert chunks[-1].error.code is ErrorCode.DEADLINE_EXCEEDED
    await assert_empty(engine)


async def test_invariant_08_a_deadline_of_zero_is_no_missing_deadline(
    engine: AsyncOmniEngine,
) -> None:
    try:
        chunks = await asyncio.wait_for(
            collect(engine, request("a", TextInput(), deadline=0.0)), 10
        )
    except EngineOverloadedError:
        return
    assert chunks[-1].error is not None
    assert chunks[-1].error.code is ErrorCode.DEADLINE_EXCEEDED


async def test_invariant_08_an_identifier_is_live_once(engine: AsyncOmniEngine) -> None:
    stream = engine.generate(request("a", TEXT))
    async with contextlib.aclosing(stream):
        await anext(stream)
        with pytest.raises(InvalidRequestError) as refused:
            await collect(engine, request("a", TEXT))
        assert refused.value.parameter == "request_id"
        rest = [chunk async for chunk in stream]
    assert rest[-1].final
    assert rest[-1].error is None
    again = await collect(engine, request("a", TEXT))
    assert np.array_equal(sound(again), samples_of(TEXT))
    await assert_empty(engine)


async def test_invariant_08_a_retry_under_the_same_name_is_not_ended_by_the_failed_ones_end(
    engine: AsyncOmniEngine,
) -> None:
    for _ in range(20):
        stream = engine.generate(request("a", "xy" + ADAPTER_FAULT))
        async for chunk in stream:
            failed = chunk
        assert failed.error is not None
        chunks = await collect(engine, request("a", TEXT))
        assert chunks[-1].error is None
        assert np.array_equal(sound(chunks), samples_of(TEXT))
    await assert_empty(engine)


async def test_invariant_08_wrong_requests_are_refused_and_leave_nothing(
    engine: AsyncOmniEngine,
) -> None:
    with pytest.raises(InvalidRequestError):
        await collect(engine, request("a", TEXT, parameters=SpeechParameters(voice="nobody")))
    with pytest.raises(InvalidRequestError) as refused:
        await collect(engine, request("a", TEXT, route="nowhere"))
    assert refused.value.parameter == "route"
    await assert_empty(engine)


async def test_invariant_08_closing_the_engine_ends_who_runs_and_who_waits(
    engine: AsyncOmniEngine, toy: Toy
) -> None:
    text = [TextInput() for _ in range(30)]
    speaking = [
        asyncio.ensure_future(collect(engine, request(f"r{i}", text[i]))) for i in range(30)
    ]
    await text[0].write("begun")
    await until(engine, lambda _: len(engine._turns.tickets) == 30)
    await until_idle(engine)
    assert engine.health().running == 24
    assert engine.health().waiting == 6
    await engine.close()
    results = await asyncio.wait_for(asyncio.gather(*speaking, return_exceptions=True), 10)
    for result in results[:24]:
        assert isinstance(result, list)
        assert_one_terminal(result)
        assert result[-1].error is not None
        assert result[-1].error.code is ErrorCode.SHUTTING_DOWN
    assert all(isinstance(result, EngineClosedError) for result in results[24:])
    with pytest.raises(EngineClosedError):
        await collect(engine, request("late", TEXT))
    await engine.abort("r0")
    await engine.close()
    await assert_empty(engine)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_invariant_08_an_engine_thread_that_dies_ends_everyone(
    engine: AsyncOmniEngine,
) -> None:
    """It should not, but if it does, nobody waits for ever and the health says so."""
    text = TextInput()
    speaking = asyncio.ensure_future(collect(engine, request("a", text)))
    await text.write("begun")
    await until_idle(engine)

    def die() -> None:
        raise SystemExit

    engine._host.post(die)
    chunks = await asyncio.wait_for(speaking, 10)
    assert_one_terminal(chunks)
    assert chunks[-1].error is not None
    assert not engine.health().ready
    with pytest.raises(EngineClosedError):
        await asyncio.wait_for(collect(engine, request("b", TEXT)), 10)
    await asyncio.wait_for(engine.abort("a"), 10)
    await on_engine_thread(engine, lambda orchestrator: orchestrator.live)
