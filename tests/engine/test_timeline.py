from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from engine import ConfigurationError, ErrorCode, TextInput
from engine.engine import AsyncOmniEngine
from engine.timeline import StageTimes
from tests.toys import DEPLOYMENT, STEP_FAULT, Toy, collect, request, started, until_idle

# Moments are seconds; the values are exact in binary.


def test_the_time_from_the_first_input_to_the_end_is_shared_out() -> None:
    times = StageTimes()
    times.idle(0.0)  # nothing of the stage upstream yet
    times.take(0.5, 1.0)
    times.offer(1.0)
    assert times.wake(1.5) == 0.5, "a chunk's worth came later"
    times.step(2.0, 2.25)
    times.first_output = 2.25
    times.hold(2.25)
    times.idle(2.5)
    assert times.release(3.25) == 1.0
    times.take(3.0, 3.25)
    assert times.wake(4.0) == 0.75, "without the time that it was held as well"
    times.step(4.5, 5.0)
    assert times.end(5.0) == (0.0, 0.0)
    assert (times.first_input, times.first_step, times.ended) == (1.0, 2.0, 5.0)
    assert (times.steps, times.compute) == (2, 0.75)
    assert times.queue == 0.5
    assert (times.held, times.starved) == (1.0, 1.25)
    assert (times.transfer, times.buffered, times.chunks) == (0.5, 0.75, 2)
    # 4.0 in all; the waits are the queue, and from 4.0 to 4.5.
    assert times.waited == 1.0


def test_the_time_before_the_first_input_is_that_of_the_stages_upstream() -> None:
    times = StageTimes()
    times.idle(0.0)
    assert times.wake(4.0) == 0.0
    assert times.end(5.0) == (0.0, 0.0)
    assert (times.starved, times.waited, times.first_step) == (0.0, 0.0, None)


def test_an_end_closes_what_is_open_and_counts_once() -> None:
    times = StageTimes()
    times.offer(0.0)
    times.step(0.0, 1.0)
    times.hold(1.0)
    times.idle(1.0)
    assert times.end(3.0) == (2.0, 0.0)
    assert times.end(9.0) == (0.0, 0.0)
    assert (times.held, times.starved, times.ended) == (2.0, 0.0, 3.0)


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.mark.asyncio
async def test_a_request_knows_where_its_time_went(toy: Toy, tmp_path: Path) -> None:
    async with started(toy.pipeline, tmp_path) as engine:
        text = TextInput()
        wanted = request("a", text)
        speaking = asyncio.ensure_future(collect(engine, wanted))
        await text.write("some words")
        await until_idle(engine)
        await asyncio.sleep(0.2)
        await text.write(", later")
        text.close()
        chunks = await speaking
    times = wanted.times
    assert chunks[-1].error is None
    moments = [times.arrived, times.admitted, times.opened, times.first_audio, times.ended]
    assert None not in moments
    assert moments == sorted(moments)  # type: ignore[type-var]
    assert times.error is None
    assert times.audio_seconds == pytest.approx(0.17)
    assert list(times.stages) == ["steps", "voice"]
    for stage in times.stages.values():
        inside = [stage.first_input, stage.first_step, stage.first_output, stage.ended]
        assert None not in inside
        assert inside == sorted(inside)  # type: ignore[type-var]
        assert stage.steps > 0
        assert stage.compute > 0
        assert stage.starved > 0.15, "the pause in the text"
        assert stage.transfer is not None
        total = stage.ended - stage.first_input  # type: ignore[operator]
        parts = stage.compute + stage.starved + stage.held + stage.waited
        assert total == pytest.approx(parts)
    assert times.stages["steps"].steps >= 17
    assert times.stages["voice"].chunks == 17, "one a character"


def _of(engine: AsyncOmniEngine, name: str, **labels: str) -> float:
    return engine.registry.get_sample_value(name, labels) or 0.0


@pytest.mark.asyncio
async def test_a_client_that_does_not_read_shows_as_time_without_credit(
    toy: Toy, tmp_path: Path
) -> None:
    async with started(toy.pipeline, tmp_path) as engine:
        wanted = request("a", "long " * 60)
        async with contextlib.aclosing(engine.generate(wanted)) as stream:
            await anext(stream)
            await until_idle(engine)
            in_flight = "antiphon_stage_credits_in_use"
            assert _of(engine, in_flight, stage="voice") > 0
            assert _of(engine, in_flight, stage="steps") > 0
            await asyncio.sleep(0.3)
            async for _ in stream:
                pass
        stage = wanted.times.stages["voice"]
        assert stage.held > 0.29
        assert stage.starved < stage.held / 2, "what it waits for is credit"
        stall = "antiphon_stage_credit_stall_seconds_total"
        assert _of(engine, stall, stage="voice") == pytest.approx(stage.held)
        await until_idle(engine)
        assert _of(engine, in_flight, stage="voice") == 0
        assert _of(engine, "antiphon_stage_queue_depth", stage="voice") == 0


@pytest.mark.asyncio
async def test_metrics_say_why_requests_ended_early(toy: Toy, tmp_path: Path) -> None:
    async with started(toy.pipeline, tmp_path) as engine:
        stream = engine.generate(request("left", "text " * 100))
        await anext(stream)
        await stream.aclose()
        wanted = request("failed", STEP_FAULT)
        await collect(engine, wanted)
        assert wanted.times.error is ErrorCode.STAGE_FAILED
        assert wanted.times.ended is not None
        late = request("late", TextInput(), deadline=0.05)
        await collect(engine, late)
        aborted = "antiphon_requests_aborted_total"
        for reason in ("disconnected", "stage_failed", "deadline_exceeded"):
            assert _of(engine, aborted, reason=reason) == 1
        assert _of(engine, "antiphon_cancel_seconds_count") == 3
        # Each stage that worked for a request told its times once.
        assert _of(engine, "antiphon_stage_queue_seconds_count", stage="voice") == 2
        assert _of(engine, "antiphon_stage_transfer_seconds_count", stage="voice") == 2


@pytest.mark.asyncio
async def test_a_chunk_that_fits_no_edge_is_refused_at_the_start(toy: Toy, tmp_path: Path) -> None:
    voice = {**DEPLOYMENT["stages"]["voice"], "chunk": {"first_units": 2, "maximum_units": 17}}
    stages = {**DEPLOYMENT["stages"], "voice": voice}
    wrong = r"stages\.voice\.chunk\.maximum_units is 17.*at most 16"
    with pytest.raises(ConfigurationError, match=wrong):
        async with started(toy.pipeline, tmp_path, {**DEPLOYMENT, "stages": stages}):
            pass
