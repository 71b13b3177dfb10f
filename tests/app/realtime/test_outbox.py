"""What waits for a client: bounded, in order, and without what nobody should hear."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.realtime.outbox import Closing, Outbox
from app.realtime.output import ServerEvent


def sound(item: str, size: int = 100) -> ServerEvent:
    return ServerEvent({"type": "delta", "delta": "x" * size}, ticks=size, item=item)


def control(number: int) -> ServerEvent:
    return ServerEvent({"type": "control", "number": number})


async def everything(outbox: Outbox) -> list[dict[str, object]]:
    outbox.close(Closing(1000, "done"))
    frames = []
    while (frame := await outbox.take()) is not None:
        frames.append(json.loads(frame.text))
    return frames


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "control", "purge a", "take"]), max_size=60))
def test_only_purged_sound_is_missing(steps: list[str]) -> None:
    async def walk() -> None:
        outbox = Outbox(1000, 1 << 20)
        expected: list[str] = []
        got: list[str] = []
        for number, step in enumerate(steps):
            if step == "control":
                outbox.put(control(number))
                expected.append(f"control {number}")
            elif step == "purge a":
                waiting = expected[len(got) :]
                assert outbox.purge("a") == 100 * waiting.count("a")
                expected = expected[: len(got)] + [w for w in waiting if w != "a"]
            elif step == "take" and len(got) < len(expected):
                frame = await outbox.take()
                assert frame is not None
                got.append(expected[len(got)])
            elif step in ("a", "b"):
                outbox.put(sound(step))
                expected.append(step)
        rest = await everything(outbox)
        assert [e.get("number") for e in rest] == [
            int(w.split()[1]) if w.startswith("control") else None for w in expected[len(got) :]
        ]
        assert outbox.waiting == 0

    asyncio.run(walk())


@pytest.mark.asyncio
async def test_sound_waits_for_room_and_control_does_not() -> None:
    outbox = Outbox(300, 1 << 20)
    for _ in range(2):
        await outbox.room()
        outbox.put(sound("a"))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    for number in range(1000):
        outbox.put(control(number))
    assert not outbox.overfull
    outbox.purge("a")
    await asyncio.wait_for(waiting, 1)
    assert len(await everything(outbox)) == 1000


@pytest.mark.asyncio
async def test_reserved_bytes_count() -> None:
    outbox = Outbox(300, 1 << 20)
    outbox.reserve(400)
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.reserve(-400)
    await asyncio.wait_for(waiting, 1)


@pytest.mark.asyncio
async def test_too_much_of_everything_else_is_told() -> None:
    outbox = Outbox(300, 1000)
    for number in range(100):
        outbox.put(control(number))
    assert outbox.overfull


@pytest.mark.asyncio
async def test_a_disorderly_close_sends_nothing_more() -> None:
    outbox = Outbox(300, 1000)
    outbox.put(control(1))
    outbox.close(Closing(4001, "replaced", orderly=False))
    outbox.close(Closing(1000, "twice"))
    outbox.put(control(2))
    assert await outbox.take() is None
    assert outbox.closing == Closing(4001, "replaced", orderly=False)
    await asyncio.wait_for(outbox.room(), 1)
