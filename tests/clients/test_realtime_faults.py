"""Realtime sockets that misbehave, against the real engine: the session, or the server, goes on."""

from __future__ import annotations

import asyncio
import base64
import json
import socket

import pytest
import websockets

from tests.app.realtime.conversing import Talk, talking
from tests.clients.speaking import is_idle
from tests.watching import metric, until

pytestmark = pytest.mark.asyncio

STORY = "Tell me a long story about a dragon and a knight."
PATIENCE = 90.0

BAD_FRAMES: tuple[str | bytes, ...] = (
    "{",
    "[]",
    b"\x00\x01",
    "[" * 100_000,
    json.dumps({"type": "nonsense"}),
    json.dumps({"type": "response.create", "response": {"metadata": {"k": "v" * 600}}}),
    json.dumps({"type": "input_audio_buffer.append", "audio": "no base64!"}),
    json.dumps(
        {
            "type": "input_audio_buffer.append",
            "audio": base64.b64encode(bytes((15 << 20) + 3000)).decode(),
        }
    ),
)


def address(base_url: str) -> str:
    return base_url.replace("http", "ws", 1)


def idle(base_url: str) -> bool:
    return metric(base_url, "antiphon_realtime_sessions") == 0 and is_idle(base_url)


async def asked(talk: Talk) -> None:
    await talk.send("session.update", session={"type": "realtime", "max_output_tokens": 40})
    await talk.until("session.updated")
    await talk.say(STORY)
    await talk.send("response.create")


async def test_bad_frames_end_neither_the_session_nor_its_answer(conversing_server: str) -> None:
    async with talking(address(conversing_server), query="model=gpt-realtime") as talk:
        await asked(talk)
        await talk.until("response.created", PATIENCE)
        for frame in BAD_FRAMES:
            await talk.socket.send(frame)
        await talk.until("response.done", PATIENCE)
        await talk.rest()
        errors = [event for event in talk.events if event["type"] == "error"]
        assert len(errors) == len(BAD_FRAMES)
        await talk.say("Hello.")
        await talk.send("response.create", response={"output_modalities": ["text"]})
        done = await talk.until("response.done", PATIENCE)
        assert done["response"]["status"] in ("completed", "incomplete")


@pytest.mark.parametrize("kind", ["response.created", "response.output_audio.delta"])
async def test_nothing_is_left_of_sockets_that_are_cut(conversing_server: str, kind: str) -> None:
    for _ in range(3):
        async with talking(address(conversing_server), query="model=gpt-realtime") as talk:
            await asked(talk)
            await talk.until(kind, PATIENCE)
            talk.socket.transport.abort()
    assert await asyncio.to_thread(until, lambda: idle(conversing_server))


async def test_two_sockets_that_fight_for_a_session(conversing_server: str) -> None:
    url = address(conversing_server)
    async with talking(url, query="model=gpt-realtime&resume=1") as first:
        token = first.events[0]["session"]["resume_token"]
        await asked(first)
        await first.until("response.output_audio.delta", PATIENCE)
        last = first.events[-1]["event_id"]
        async with talking(url, query=f"resume={token}&after={last}") as second:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await first.rest(PATIENCE)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4001
            await second.until("response.done", PATIENCE)
            had = {event["event_id"] for event in first.events}
            again = [event for event in second.events if event["event_id"] in had]
            late = first.events[[e["event_id"] for e in first.events].index(last) + 1 :]
            # What the first one got behind the event it named is what it asked to get again.
            assert {event["event_id"] for event in again} == {event["event_id"] for event in late}
    assert await asyncio.to_thread(until, lambda: idle(conversing_server))


async def test_a_client_that_never_reads(conversing_server: str) -> None:
    async with talking(address(conversing_server), query="model=gpt-realtime") as talk:
        raw = talk.socket.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        talk.socket.transport.pause_reading()
        await talk.say(STORY)
        await talk.send("response.create")
        await asyncio.sleep(3)
        # Others are served meanwhile.
        async with talking(address(conversing_server), query="model=gpt-realtime") as other:
            await other.say("Hello.")
            await other.send("response.create")
            done = await other.until("response.done", PATIENCE)
            assert done["response"]["status"] in ("completed", "incomplete")
        talk.socket.transport.abort()
    assert await asyncio.to_thread(until, lambda: idle(conversing_server))
