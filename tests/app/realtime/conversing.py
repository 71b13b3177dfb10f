"""A bare client: what it sends and what it gets, every event checked by the SDK's own types."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import websockets
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

STRICT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)

Event = dict[str, Any]


class Talk:
    """One socket. Remembers every event and checks it when it comes."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.events: list[Event] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def append(self, sound: bytes) -> None:
        audio = base64.b64encode(sound).decode()
        await self.send("input_audio_buffer.append", audio=audio)

    async def say(self, text: str, **fields: Any) -> None:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        await self.send("conversation.item.create", item=item, **fields)

    async def get(self, seconds: float = 10.0) -> Event:
        frame = await asyncio.wait_for(self.socket.recv(), seconds)
        assert isinstance(frame, str)
        assert len(frame) < 1 << 20
        event: Event = json.loads(frame)
        check(event)
        self.events.append(event)
        return event

    async def until(self, kind: str, seconds: float = 10.0, **fields: Any) -> Event:
        """The next event of a kind, with these values."""
        async with asyncio.timeout(seconds):
            while True:
                event = await self.get(seconds)
                wanted = all(event.get(name) == value for name, value in fields.items())
                if event["type"] == kind and wanted:
                    return event

    async def rest(self, quiet: float = 0.3) -> list[Event]:
        """Everything that comes until nothing does."""
        start = len(self.events)
        try:
            while True:
                await self.get(quiet)
        except TimeoutError:
            return self.events[start:]

    def kinds(self, start: int = 0) -> list[str]:
        return [event["type"] for event in self.events[start:]]


def check(event: Event) -> None:
    """The SDK's types accept the event, and know its kind."""
    assert event["event_id"].startswith("event_")
    parsed = STRICT.validate_python(event)
    assert parsed.type == event["type"]


def sound_of(events: list[Event], **fields: Any) -> bytes:
    """The sound in deltas."""
    deltas = [
        base64.b64decode(event["delta"])
        for event in events
        if event["type"] == "response.output_audio.delta"
        and all(event[name] == value for name, value in fields.items())
    ]
    assert all(len(delta) % 2 == 0 for delta in deltas)
    return b"".join(deltas)


@asynccontextmanager
async def talking(
    url: str, *, query: str = "model=rote", created: bool = True, **options: Any
) -> AsyncGenerator[Talk]:
    """Opens a socket and waits for its first event."""
    async with websockets.connect(
        f"{url}/v1/realtime?{query}", max_size=1 << 20, compression=None, **options
    ) as socket:
        talk = Talk(socket)
        if created:
            first = await talk.get()
            assert first["type"] == "session.created"
        yield talk
