"""Full duplex: sound both ways at the pace of hearing, every event by the SDK's own types."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from openai.types.live import ConnectServerEvent
from pydantic import TypeAdapter

from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.ears import need_ear
from tests.voices import pcm, silence, synthesized

pytestmark = pytest.mark.asyncio

STRICT: TypeAdapter[Any] = TypeAdapter(ConnectServerEvent)
PIECE = 1920
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

    async def speak(self, sound: bytes) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for number, at in enumerate(range(0, len(sound), PIECE)):
            audio = base64.b64encode(sound[at : at + PIECE]).decode()
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
        assert lasts == pytest.approx(0.2 * len(f"You said: {heard['delta']}".split()), abs=0.05)
        took = sound[-1][0] - sound[0][0]
        assert took > lasts - 0.8, "sound came faster than it is heard"
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
    for _ in range(100):
        if not hearing.realtime_sessions():
            break
        await asyncio.sleep(0.05)
    assert hearing.realtime_sessions() == 0
