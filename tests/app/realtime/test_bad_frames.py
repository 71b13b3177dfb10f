"""Frames that no client should send: the session survives each, and says which it was."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
import websockets

from engine import AbortReason
from tests.app.realtime.conversing import Talk, talking
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.watching import comes_true

pytestmark = pytest.mark.asyncio

REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({"type": "nonsense"}, "invalid_value", "type"),
    ({"no": "type"}, "missing_required_parameter", "type"),
    ({"type": 5}, "invalid_value", "type"),
    (
        {"type": "session.update", "session": {"type": "realtime", "speed": 1}},
        "unknown_parameter",
        "session.speed",
    ),
    (
        {
            "type": "session.update",
            "session": {"audio": {"input": {"turn_detection": {"type": "server_vad", "x": 1}}}},
        },
        "unknown_parameter",
        "session.audio.input.turn_detection.x",
    ),
    (
        {"type": "session.update", "session": {"audio": {"output": {"voice": "nobody"}}}},
        "invalid_value",
        "session.audio.output.voice",
    ),
    (
        {"type": "session.update", "session": {"audio": {"output": {"speed": 9}}}},
        "invalid_value",
        "session.audio.output.speed",
    ),
    (
        {
            "type": "session.update",
            "session": {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 8000}}}},
        },
        "invalid_value",
        "session.audio.input.format",
    ),
    (
        {"type": "input_audio_buffer.append", "audio": "%%%"},
        "invalid_value",
        "audio",
    ),
    ({"type": "input_audio_buffer.append"}, "missing_required_parameter", "audio"),
    (
        {
            "type": "conversation.item.create",
            "item": {"type": "message", "role": "user", "content": [{"type": "input_text"}]},
        },
        "missing_required_parameter",
        "item.content[0].text",
    ),
    (
        {
            "type": "conversation.item.create",
            "previous_item_id": "nowhere",
            "item": {"type": "message", "role": "user", "content": []},
        },
        "item_create_invalid_previous_item_id",
        "previous_item_id",
    ),
    (
        {"type": "conversation.item.retrieve", "item_id": "nowhere"},
        "item_retrieve_invalid_item_id",
        "item_id",
    ),
    (
        {"type": "conversation.item.truncate", "item_id": "nowhere", "audio_end_ms": 0},
        "item_truncate_invalid_item_id",
        "item_id",
    ),
    (
        {"type": "conversation.item.delete", "item_id": "nowhere"},
        "item_delete_invalid_item_id",
        "item_id",
    ),
    ({"type": "response.cancel"}, "response_cancel_not_active", None),
    (
        {"type": "response.create", "response": {"metadata": {"k": "v" * 600}}},
        "invalid_value",
        "response.metadata.k",
    ),
]


@pytest.mark.parametrize(("event", "code", "param"), REFUSED, ids=lambda v: str(v)[:40])
async def test_a_refused_event_is_named(
    rote: Serving, event: dict[str, Any], code: str, param: str | None
) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.socket.send(json.dumps({**event, "event_id": "mine"}))
        error = (await talk.until("error"))["error"]
        assert error["code"] == code
        assert error["param"] == param
        assert error["event_id"] == "mine"
        await still_works(talk)


@pytest.mark.parametrize(
    "frame",
    [b"\x00\x01", "", "{", "[]", '"text"', "null", "[" * 100_000, "x" * 200_000],
    ids=lambda v: repr(v[:8]),
)
async def test_frames_that_are_no_events(rote: Serving, frame: bytes | str) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.socket.send(frame)
        error = (await talk.until("error"))["error"]
        assert error["code"] in ("invalid_json", "invalid_event")
        await still_works(talk)


async def test_sound_that_is_too_large_is_refused() -> None:
    with serving(RoteEngine(), ear=False, realtime_append_bytes=10_000) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            await talk.append(bytes(20_000))
            assert (await talk.until("error"))["error"]["code"] == "audio_too_large"
            await still_works(talk)


async def test_a_frame_above_the_servers_limit_closes_with_1009() -> None:
    with serving(RoteEngine(), ear=False, websocket_frame_bytes=1 << 20) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await send_until_closed(talk, "x" * (2 << 20))
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009


async def test_unpadded_base64_is_taken(rote: Serving) -> None:
    async with talking(rote.websocket_url) as talk:
        await talk.send("input_audio_buffer.append", audio="AAA")
        # Nothing listens on this server, which is what it complains of, and not the padding.
        assert (await talk.until("error"))["error"]["code"] == "ear_unavailable"


async def test_a_client_that_never_reads_is_cut_off() -> None:
    engine = RoteEngine()
    limits = {
        "slow_client_seconds": 0.5,
        "realtime_queue_bytes": 8192,
        "socket_send_buffer_bytes": 8192,
        "write_buffer_bytes": 8192,
    }
    with serving(engine, ear=False, **limits) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            raw = talk.socket.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            talk.socket.transport.pause_reading()
            for _ in range(20):
                await talk.say("LONG " * 200)
                await talk.send("response.create")
            assert await comes_true(lambda: not (running.realtime_sessions() or engine.live))
            assert running.realtime_sessions() == 0
            assert engine.live == set()
            assert AbortReason.SLOW_CLIENT in engine.ended_for.values()
            talk.socket.transport.abort()  # it would wait for an answer to its goodbye
        assert engine.words_made < 500, "the engine went on for a client that does not read"


async def send_until_closed(talk: Talk, frame: str) -> None:
    """Sends what the server may refuse before all of it is sent, and waits for the end."""
    await talk.socket.send(frame)
    await talk.rest(5)


async def still_works(talk: Talk) -> None:
    await talk.say("hello")
    await talk.until("conversation.item.done")
