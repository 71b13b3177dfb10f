"""A client that comes back on another socket takes its session over."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest
import websockets

from tests.app.realtime.conversing import Talk, sound_of, talking
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.watching import comes_true

pytestmark = pytest.mark.asyncio

RESUMABLE = "model=rote&resume=1"
LONG_SECONDS = 10.0
"""What fifty words last."""


@pytest.fixture
def slow() -> Generator[Serving]:
    engine = RoteEngine(pace=0.02)
    with serving(engine, ear=False, realtime_resume_seconds=0.6) as running:  # type: ignore[arg-type]
        yield running


def token(talk: Talk) -> str:
    return str(talk.events[0]["session"]["resume_token"])


def seconds(data: bytes) -> float:
    return len(data) / 48_000


async def begin(talk: Talk) -> None:
    await talk.say("LONG")
    await talk.send("response.create")
    for _ in range(3):
        await talk.until("response.output_audio.delta")


async def test_without_asking_there_is_no_token(slow: Serving) -> None:
    async with talking(slow.websocket_url) as talk:
        assert "resume_token" not in talk.events[0]["session"]


async def test_the_answer_goes_on_after_the_last_event_that_came(slow: Serving) -> None:
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        last = old.events[-1]["event_id"]
        query = f"resume={token(old)}&after={last}"
        async with talking(slow.websocket_url, query=query) as new:
            done = await new.until("response.done")
            assert done["response"]["status"] == "completed"
            whole = sound_of(old.events) + sound_of(new.events)
            assert seconds(whole) == pytest.approx(LONG_SECONDS)
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await old.rest(5)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4001
            assert "taken over" in closed.value.rcvd.reason


async def test_two_sockets_never_hear_the_same_session(slow: Serving) -> None:
    """Whatever the old socket still gets was sent before the new one opened."""
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        listening = asyncio.create_task(drain(old))
        async with talking(slow.websocket_url, query=f"resume={token(old)}&after=x") as new:
            await new.until("response.done")
            await listening
            mine = {e["event_id"] for e in new.events}
            theirs = {e["event_id"] for e in old.events}
            assert not mine & theirs


async def test_the_answer_goes_on_where_the_client_stopped_playing(slow: Serving) -> None:
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        item = old.events[-1]["item_id"]
        await old.until("response.done")
        query = f"resume={token(old)}&item_id={item}&audio_end_ms=6000"
        async with talking(slow.websocket_url, query=query) as new:
            await new.until("response.done")
            assert seconds(sound_of(new.events)) == pytest.approx(LONG_SECONDS - 6, abs=0.21)


async def test_a_socket_that_is_cut_can_be_followed(slow: Serving) -> None:
    engine = slow.engine
    assert isinstance(engine, RoteEngine)
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        heard = sound_of(old.events)
        last = old.events[-1]["event_id"]
        old.socket.transport.abort()
    await asyncio.sleep(0.2)
    async with talking(slow.websocket_url, query=f"resume={token(old)}&after={last}") as new:
        await new.until("response.done")
        assert seconds(heard + sound_of(new.events)) == pytest.approx(LONG_SECONDS)
        await new.say("again")
        await new.send("response.create")
        done = await new.until("response.done")
        assert done["response"]["output"][0]["content"][0]["transcript"] == "You said: again"
        assert new.events[0]["session"]["id"] == old.events[0]["session"]["id"]


async def test_what_was_not_sent_yet_goes_on_without_being_asked_for(slow: Serving) -> None:
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        listening = asyncio.create_task(drain(old))
        async with talking(slow.websocket_url, query=f"resume={token(old)}") as new:
            await new.until("response.done")
            await listening
            whole = sound_of(old.events) + sound_of(new.events)
            assert seconds(whole) == pytest.approx(LONG_SECONDS, abs=0.21)


async def test_what_was_heard_is_right_after_a_takeover(slow: Serving) -> None:
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        item = old.events[-1]["item_id"]
        query = f"resume={token(old)}&item_id={item}&audio_end_ms=0"
        async with talking(slow.websocket_url, query=query) as new:
            await new.until("response.output_audio.delta")
            await new.send("response.cancel")
            done = await new.until("response.done")
            heard = done["response"]["output"][0]["content"][0]["transcript"].split()
            assert len(heard) <= 4, "the answer began anew, and was stopped at once"


async def test_nobody_comes_back(slow: Serving) -> None:
    engine = slow.engine
    assert isinstance(engine, RoteEngine)
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        await begin(old)
        old.socket.transport.abort()
    assert await comes_true(lambda: not slow.realtime_sessions())
    assert slow.realtime_sessions() == 0
    assert engine.live == set()
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with talking(slow.websocket_url, query=f"resume={token(old)}"):
            pass
    assert refused.value.response.status_code == 404


async def test_a_client_that_leaves_in_order_is_not_waited_for() -> None:
    with serving(RoteEngine(), ear=False, realtime_resume_seconds=60.0) as patient:  # type: ignore[arg-type]
        async with talking(patient.websocket_url, query=RESUMABLE) as talk:
            assert token(talk)
            assert patient.realtime_sessions() == 1
        assert await comes_true(lambda: not patient.realtime_sessions())
        assert patient.realtime_sessions() == 0


async def test_an_old_socket_can_change_nothing(slow: Serving) -> None:
    async with talking(slow.websocket_url, query=RESUMABLE) as old:
        talking_on = asyncio.create_task(talk_on(old))
        await asyncio.sleep(0.1)
        async with talking(slow.websocket_url, query=f"resume={token(old)}") as new:
            await talking_on
            await new.rest()  # what the old one had added before, and was not told yet
            await new.say("from the new one")
            mine = await new.until("conversation.item.done")
            await new.rest()
            await new.say("from the new one, too")
            added = await new.until("conversation.item.added")
            assert added["previous_item_id"] == mine["item"]["id"]


async def talk_on(talk: Talk) -> None:
    # Who does not read would not see that the server says goodbye.
    reading = asyncio.create_task(talk.rest(60.0))
    try:
        while True:
            await talk.say("from the old one")
            await asyncio.sleep(0.01)
    except websockets.ConnectionClosed:
        pass
    await asyncio.gather(reading, return_exceptions=True)


async def drain(talk: Talk) -> None:
    try:
        while True:
            await talk.get(10)
    except websockets.ConnectionClosed:
        pass
