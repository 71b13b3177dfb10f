"""Measures spoken conversations on a running server that converses.

    python -m benchmarks.conversation http://127.0.0.1:8000 --turns 20 --interruptions 20

Says, in milliseconds: from the end of a turn to its words and to the first sound of its answer;
and from the moment at which the interrupting speech was long enough, to `speech_started` and to the
last sound of the interrupted answer. Sound that comes after `speech_started` is stale; there must
be none.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import statistics
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import websockets

from tests.voices import pcm, silence, synthesized

PIECE = 1920
PIECE_SECONDS = 0.04
GATE_SECONDS = 0.4
"""Speech of this length interrupts; the server's setting ANTIPHON_EAR_INTERRUPTION_MS."""

QUESTIONS = (
    "Tell me something about the sea.",
    "What do you think of music?",
    "How do birds fly?",
    "Can you tell me a short story?",
)
INTERRUPTION = "No no, wait a moment, I have another question."


@dataclass
class Figures:
    """What was measured, in seconds, and in bytes for what is stale."""

    words: list[float] = field(default_factory=list)
    first_sound: list[float] = field(default_factory=list)
    noticed: list[float] = field(default_factory=list)
    last_sound: list[float] = field(default_factory=list)
    stale_bytes: int = 0


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

    async def until(self, kind: str, start: int, seconds: float = 120.0) -> int:
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
        """As fast as a microphone would; returns when the first piece was sent."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, at in enumerate(range(0, len(sound), PIECE)):
            audio = base64.b64encode(sound[at : at + PIECE]).decode()
            event = {"type": "input_audio_buffer.append", "audio": audio}
            await self.socket.send(json.dumps(event))
            due = began + (number + 1) * PIECE_SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))
        return began

    def came(self, position: int) -> float:
        """When the event before a position came."""
        return self.events[position - 1][0]


@asynccontextmanager
async def calling(base_url: str, instructions: str) -> AsyncGenerator[Caller]:
    url = base_url.replace("http", "ws", 1) + "/v1/realtime?model=gpt-realtime"
    async with websockets.connect(url, max_size=1 << 20, compression=None) as socket:
        caller = Caller(socket)
        reading = asyncio.create_task(caller.read())
        await caller.until("session.created", 0)
        audio = {"input": {"transcription": {"model": "whisper-1"}}}
        session = {"type": "realtime", "instructions": instructions, "audio": audio}
        await socket.send(json.dumps({"type": "session.update", "session": session}))
        await caller.until("session.updated", 0)
        yield caller
        reading.cancel()


async def take_turn(base_url: str, question: str, figures: Figures) -> None:
    async with calling(base_url, "Answer in one short sentence.") as caller:
        sound = pcm(silence(0.3)) + pcm(synthesized(question)) + pcm(silence(2.0))
        speaking = asyncio.create_task(caller.speak(sound))
        stopped = await caller.until("input_audio_buffer.speech_stopped", 0)
        kind = "conversation.item.input_audio_transcription.completed"
        words = await caller.until(kind, stopped)
        first = await caller.until("response.output_audio.delta", stopped)
        figures.words.append(caller.came(words) - caller.came(stopped))
        figures.first_sound.append(caller.came(first) - caller.came(stopped))
        await caller.until("response.done", stopped)
        await speaking


async def interrupt(base_url: str, figures: Figures) -> None:
    async with calling(base_url, "Tell long stories.") as caller:
        content = [{"type": "input_text", "text": "Tell me a long story about a dragon."}]
        item = {"type": "message", "role": "user", "content": content}
        create = {"type": "conversation.item.create", "item": item}
        await caller.socket.send(json.dumps(create))
        await caller.socket.send(json.dumps({"type": "response.create"}))
        await caller.until("response.output_audio.delta", 0)
        await asyncio.sleep(random.uniform(0.0, 1.5))
        start = len(caller.events)
        speaking = asyncio.create_task(caller.speak(pcm(synthesized(INTERRUPTION))))
        started = await caller.until("input_audio_buffer.speech_started", start)
        began = await speaking
        await asyncio.sleep(0.5)
        old = next(e["item_id"] for _, e in caller.events if e["type"].endswith("audio.delta"))
        deltas = [
            (came, position, len(base64.b64decode(event["delta"])))
            for position, (came, event) in enumerate(caller.events)
            if event["type"] == "response.output_audio.delta" and event["item_id"] == old
        ]
        figures.noticed.append(caller.came(started) - began - GATE_SECONDS)
        figures.last_sound.append(max(0.0, deltas[-1][0] - began - GATE_SECONDS))
        figures.stale_bytes += sum(size for _, at, size in deltas if at >= started)


def report(name: str, seconds: list[float]) -> None:
    if seconds:
        ordered = sorted(seconds)
        high = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        middle = statistics.median(ordered)
        print(f"{name:42} p50 {1000 * middle:6.0f} ms   p95 {1000 * high:6.0f} ms")


async def main(base_url: str, turns: int, interruptions: int) -> None:
    figures = Figures()
    for number in range(turns):
        await take_turn(base_url, QUESTIONS[number % len(QUESTIONS)], figures)
    for _ in range(interruptions):
        await interrupt(base_url, figures)
    report("end of turn to its words", figures.words)
    report("end of turn to first sound", figures.first_sound)
    report("long enough speech to speech_started", figures.noticed)
    report("long enough speech to last old sound", figures.last_sound)
    print(f"stale bytes in {interruptions} interruptions: {figures.stale_bytes}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--interruptions", type=int, default=20)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.base_url, arguments.turns, arguments.interruptions))
