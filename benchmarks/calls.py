"""A caller on the realtime WebSocket, for benchmarks: speaks like a microphone, notes times."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import websockets

from app.load import BYTES_PER_SECOND

PIECE = 1920
PIECE_SECONDS = PIECE / BYTES_PER_SECOND

SOUND = "response.output_audio.delta"


class Caller:
    """One session, with the time at which each event came."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.events: list[tuple[float, dict[str, Any]]] = []
        self.changed = asyncio.Event()

    async def read(self) -> None:
        """Notes events until the socket closes."""
        async for frame in self.socket:
            self.events.append((asyncio.get_running_loop().time(), json.loads(frame)))
            self.changed.set()

    async def send(self, kind: str, **fields: Any) -> None:
        """Sends an event."""
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def ask(self, text: str) -> None:
        """Writes a message and asks for its answer."""
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        await self.send("conversation.item.create", item=item)
        await self.send("response.create")

    async def until(self, kind: str, start: int = 0, seconds: float = 120.0) -> int:
        """The position behind the next event of a kind."""
        async with asyncio.timeout(seconds):
            while True:
                for position in range(start, len(self.events)):
                    if self.events[position][1]["type"] == kind:
                        return position + 1
                start = len(self.events)
                self.changed.clear()
                await self.changed.wait()

    async def speak(self, sound: bytes) -> float:
        """As fast as a microphone would; returns when it began.

        A piece is sent when the time that it lasts is over.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, at in enumerate(range(0, len(sound), PIECE)):
            due = began + (number + 1) * PIECE_SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))
            audio = base64.b64encode(sound[at : at + PIECE]).decode()
            await self.send("input_audio_buffer.append", audio=audio)
        return began

    def came(self, position: int) -> float:
        """When the event before a position came."""
        return self.events[position - 1][0]

    def sound(self, start: int = 0) -> list[tuple[int, float, float, str]]:
        """Position, time, length in seconds, and item of each piece of sound since a position."""
        return [
            (at, came, len(base64.b64decode(event["delta"])) / BYTES_PER_SECOND, event["item_id"])
            for at, (came, event) in enumerate(self.events)
            if at >= start and event["type"] == SOUND
        ]


@asynccontextmanager
async def calling(base_url: str, instructions: str) -> AsyncGenerator[Caller]:
    """Opens a session that tells what it hears."""
    url = base_url.replace("http", "ws", 1) + "/v1/realtime?model=gpt-realtime"
    async with websockets.connect(url, max_size=1 << 20, compression=None) as socket:
        caller = Caller(socket)
        reading = asyncio.create_task(caller.read())
        await caller.until("session.created")
        audio = {"input": {"transcription": {"model": "whisper-1"}}}
        session = {"type": "realtime", "instructions": instructions, "audio": audio}
        await caller.send("session.update", session=session)
        await caller.until("session.updated")
        try:
            yield caller
        finally:
            reading.cancel()


class Metrics:
    """The server's own figures at one moment.

    Attributes:
        samples: The value of each, by its name and labels as they are written.
    """

    def __init__(self, base_url: str) -> None:
        self.samples: dict[str, float] = {}
        for line in httpx.get(f"{base_url}/metrics", timeout=60).text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                self.samples[name] = float(value)

    def value(self, name: str) -> float:
        """One sample; 0 where there is none."""
        return self.samples.get(name, 0.0)

    def labelled(self, name: str) -> dict[str, float]:
        """The samples of a metric with one label, by the label's value."""
        return {
            key.split('"')[1]: value
            for key, value in self.samples.items()
            if key.startswith(f"{name}{{")
        }

    def at_most(self, name: str, limit: str, before: Metrics) -> tuple[int, int]:
        """A histogram's observations since `before`: how many are within a bucket, of how many."""
        bucket = f'{name}_bucket{{le="{limit}"}}'
        within = self.value(bucket) - before.value(bucket)
        return round(within), round(self.value(f"{name}_count") - before.value(f"{name}_count"))

    def mean(self, name: str, before: Metrics) -> float:
        """The mean of a histogram's observations since `before`."""
        count = self.value(f"{name}_count") - before.value(f"{name}_count")
        total = self.value(f"{name}_sum") - before.value(f"{name}_sum")
        return total / count if count else 0.0
