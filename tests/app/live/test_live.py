"""Full duplex: sound both ways at the pace of hearing, every event by the SDK's own types."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import soxr
import websockets
from openai.types.live import ConnectServerEvent
from pydantic import TypeAdapter

from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.ears import need_ear
from tests.voices import pcm, silence, synthesized
from tests.watching import comes_true

pytestmark = pytest.mark.asyncio

STRICT: TypeAdapter[Any] = TypeAdapter(ConnectServerEvent)
QUESTION = "What is the weather like today?"


class Call:
    """One socket; notes when each event came."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.events: list[tuple[float, dict[str, Any]]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def get(self, seconds: float = 15.0) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await asyncio.wait_for(self.socket.recv(), seconds))
        assert STRICT.validate_python(event).type == event["type"]
        self.events.append((asyncio.get_running_loop().time(), event))
        return event

    async def until(self, kind: str, seconds: float = 15.0) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while (event := await self.get(seconds))["type"] != kind:
                pass
        return event

    def sound(self) -> list[tuple[float, float]]:
        """When each piece came, and how long it lasts."""
        return [
            (came, len(base64.b64decode(event["delta"])) / 48_000)
            for came, event in self.events
            if event["type"] == "session.output_audio.delta"
        ]

    def loud_seconds(self, bytes_per_second: int) -> tuple[float, float]:
        """From where to where what came is no silence, in seconds since the first sound."""
        deltas = [e["delta"] for _, e in self.events if e["type"] == "session.output_audio.delta"]
        samples = np.frombuffer(b"".join(map(base64.b64decode, deltas)), np.int16)
        loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > 300)
        return 2 * loud[0] / bytes_per_second, 2 * loud[-1] / bytes_per_second

    async def speak(self, sound: bytes, bytes_per_second: int = 48_000) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        piece = bytes_per_second // 25
        for number, at in enumerate(range(0, len(sound), piece)):
            audio = base64.b64encode(sound[at : at + piece]).decode()
            await self.send("session.input_audio.append", audio=audio)
            await asyncio.sleep(max(0.0, start + (number + 1) * 0.04 - loop.time()))


@asynccontextmanager
async def calling(url: str, **session: Any) -> AsyncGenerator[Call]:
    async with websockets.connect(f"{url}/v1/live/sessions", compression=None) as socket:
        call = Call(socket)
        await call.send(
            "session.start", event_id="begin", session={"model": "gpt-live-1", **session}
        )
        started = await call.get()
        assert started["type"] == "session.started"
        assert started["client_event_id"] == "begin"
        yield call


@pytest.fixture(scope="module")
def hearing() -> Generator[Serving]:
    need_ear()
    with serving(RoteEngine(), ear=True) as running:  # type: ignore[arg-type]
        yield running


async def test_a_question_is_answered_at_the_pace_of_hearing(hearing: Serving) -> None:
    async with calling(hearing.websocket_url) as call:
        speaking = asyncio.create_task(
            call.speak(pcm(silence(0.3)) + pcm(synthesized(QUESTION)) + pcm(silence(5.0)))
        )
        heard = await call.until("session.input_transcript.delta")
        assert "weather" in heard["delta"].lower()
        assert 0 <= heard["start_ms"] < heard["end_ms"]
        ending = asyncio.create_task(call.until("session.closed", 30))
        await speaking
        await call.send("session.close", event_id="end")
        closed = await ending
        assert closed["reason"] == "close_requested"
        assert closed["client_event_id"] == "end"
        assert closed["usage"]["seconds"] >= 5
        sound = call.sound()
        lasts = sum(seconds for _, seconds in sound)
        took = sound[-1][0] - sound[0][0]
        assert took > lasts - 0.8, "sound came faster than it is heard"
        begins, ends = call.loud_seconds(48_000)
        answer = 0.2 * len(f"You said: {heard['delta']}".split())
        assert ends - begins == pytest.approx(answer, abs=0.05)
        words = [e for _, e in call.events if e["type"] == "session.output_transcript.delta"]
        said = "".join(e["delta"] for e in words)
        assert said.strip() == f"You said: {heard['delta'].strip()}"
        assert [e["start_ms"] for e in words] == sorted(e["start_ms"] for e in words)


async def test_an_interruption_stops_the_sound(hearing: Serving) -> None:
    history = [{"role": "user", "content": "LONG"}]
    async with calling(hearing.websocket_url, input=history) as call:
        question = pcm(synthesized("LONG, LONG, LONG. Long, please.")) + pcm(silence(3.0))
        interruption = pcm(synthesized("Please stop it now, I have another question."))
        ending = asyncio.create_task(call.until("session.closed", 60))
        await call.speak(question + interruption + pcm(silence(3.0)))
        await call.send("session.close")
        await ending
        heard = [e for _, e in call.events if e["type"] == "session.input_transcript.delta"]
        assert len(heard) == 2


async def test_muted_sound_is_not_heard(hearing: Serving) -> None:
    async with calling(hearing.websocket_url) as call:
        await call.send("session.input_audio.mute", event_id="m")
        assert (await call.until("session.input_audio.muted"))["client_event_id"] == "m"
        await call.speak(pcm(synthesized(QUESTION)) + pcm(silence(1.0)))
        await call.send("session.input_audio.unmute")
        await call.until("session.input_audio.unmuted")
        await call.send("session.close")
        await call.until("session.closed")
        assert [e["type"] for _, e in call.events if "transcript" in e["type"]] == []


async def test_mistakes_are_named(hearing: Serving) -> None:
    async with websockets.connect(
        f"{hearing.websocket_url}/v1/live/sessions", compression=None
    ) as socket:
        call = Call(socket)
        await call.send("session.close", event_id="early")
        refused = await call.get()
        assert refused["error"]["code"] == "session_not_started"
        assert refused["error"]["client_event_id"] == "early"
    async with calling(hearing.websocket_url) as call:
        for frame in ("{", '{"type": "nonsense"}', '{"type": "session.start", "session": {}}'):
            await call.socket.send(frame)
            assert (await call.get())["type"] == "error"
        await call.send("session.instructions.append", content="Be kind.")
        await call.until("session.instructions.appended")


async def test_nothing_is_left_of_a_call_that_is_cut(hearing: Serving) -> None:
    async with calling(hearing.websocket_url) as call:
        assert hearing.realtime_sessions() == 1
        call.socket.transport.abort()
    assert await comes_true(lambda: not hearing.realtime_sessions())
    assert hearing.realtime_sessions() == 0


@pytest.mark.parametrize(
    ("audio_format", "bytes_per_second"),
    [
        ({"type": "audio/pcm", "rate": 24_000}, 48_000),
        ({"type": "audio/pcm", "rate": 16_000}, 32_000),
        ({"type": "audio/pcmu", "rate": 8_000}, 8_000),
    ],
)
async def test_sound_comes_without_gaps(
    hearing: Serving, audio_format: dict[str, Any], bytes_per_second: int
) -> None:
    async with calling(hearing.websocket_url, audio={"format": audio_format}) as call:
        began = asyncio.get_running_loop().time()
        sent = 0.0
        while sent < 1.4:
            await call.get()
            sent = sum(lasts for _, lasts in call.sound()) * 48_000 / bytes_per_second
        took = asyncio.get_running_loop().time() - began
        # A machine that stops for a moment lets it come late, and never early.
        assert sent - 0.4 < took < sent + 1.0, "silence lasts as long as the time that passes"


async def test_sixteen_kilohertz_are_understood(hearing: Serving) -> None:
    audio = {"format": {"type": "audio/pcm", "rate": 16_000}}
    async with calling(hearing.websocket_url, audio=audio) as call:
        question = soxr.resample(synthesized(QUESTION), 24_000, 16_000)
        ending = asyncio.create_task(call.until("session.closed", 30))
        await call.speak(pcm(question) + bytes(32_000 * 5), bytes_per_second=32_000)
        await call.send("session.close")
        await ending
        heard = next(e for _, e in call.events if e["type"] == "session.input_transcript.delta")
        assert "weather" in heard["delta"].lower()
        words = [e for _, e in call.events if e["type"] == "session.output_transcript.delta"]
        loud = call.loud_seconds(32_000)
        assert words[0]["start_ms"] / 1000 == pytest.approx(loud[0], abs=0.05)
        assert words[-1]["end_ms"] / 1000 == pytest.approx(loud[1], abs=0.05)


async def test_formats_that_are_none(hearing: Serving) -> None:
    async with websockets.connect(f"{hearing.websocket_url}/v1/live/sessions") as socket:
        call = Call(socket)
        audio = {"format": {"type": "audio/pcm", "rate": 48_000}}
        await call.send("session.start", session={"model": "gpt-live-1", "audio": audio})
        refused = await call.get()
        assert refused["error"]["param"] == "session.audio.format"
        assert "24000 or 16000, not 48000" in refused["error"]["message"]


async def test_a_client_that_stops_reading_is_cut_off() -> None:
    limits = {
        "slow_client_seconds": 0.5,
        "socket_send_buffer_bytes": 8192,
        "write_buffer_bytes": 8192,
    }
    with serving(RoteEngine(), ear=False, **limits) as running:  # type: ignore[arg-type]
        async with calling(running.websocket_url) as call:
            raw = call.socket.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            call.socket.transport.pause_reading()
            assert await comes_true(lambda: not running.realtime_sessions())
            assert running.realtime_sessions() == 0, "silence is sound that it does not take, too"
            call.socket.transport.abort()
