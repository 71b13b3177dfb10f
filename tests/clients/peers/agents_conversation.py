"""The runner of openai-agents against a running server.

Usage: agents_conversation.py WEBSOCKET_URL SPEECH_FILE INTERRUPTION_FILE

The files hold bare 16-bit samples at 24 kHz. Prints one JSON object that says what happened.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from agents import function_tool
from agents.realtime import (
    RealtimeAgent,
    RealtimeModelSendInterrupt,
    RealtimeRunner,
    RealtimeSession,
)

PIECE = 1920
PATIENCE = 120.0
CALLS: list[str] = []


@function_tool
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    CALLS.append(city)
    return "sunny"


class Watcher:
    """Counts what the session lets out."""

    def __init__(self) -> None:
        self.sound = 0
        self.ends = 0
        self.interruptions = 0
        self.heard: list[str] = []
        self.errors: list[str] = []
        self.ended: list[str] = []

    async def watch(self, session: RealtimeSession) -> None:
        async for event in session:
            if event.type == "audio":
                self.sound += len(event.audio.data)
            elif event.type == "audio_interrupted":
                self.interruptions += 1
            elif event.type == "error":
                self.errors.append(str(event.error))
            elif event.type == "raw_model_event":
                raw: Any = event.data
                if raw.type == "turn_ended":
                    self.ends += 1
                elif raw.type == "raw_server_event" and raw.data["type"] == "response.done":
                    self.ended.append(raw.data["response"]["status"])
                elif raw.type in ("error", "exception"):
                    self.errors.append(repr(raw))
                elif raw.type == "input_audio_transcription_completed":
                    self.heard.append(raw.transcript)


async def until(condition: Any) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return bool(condition())


async def speak(session: RealtimeSession, sound: bytes) -> None:
    for at in range(0, len(sound), PIECE):
        await session.send_audio(sound[at : at + PIECE])
        await asyncio.sleep(0.04)


async def begin(url: str, **options: Any) -> RealtimeSession:
    agent = RealtimeAgent(name="speaker", instructions="Answer in one short sentence.", **options)
    return await RealtimeRunner(agent).run(model_config={"api_key": "none", "url": url})


async def by_voice(url: str, speech: bytes, interruption: bytes) -> dict[str, Any]:
    """A written turn, a spoken one, one that interrupts, and a cancelled answer."""
    watcher = Watcher()
    result: dict[str, Any] = {}
    async with await begin(url) as session:
        watching = asyncio.create_task(watcher.watch(session))
        await session.send_message("What is the capital of France?")
        result["text_turn"] = await until(lambda: watcher.ends == 1 and watcher.sound > 9_600)
        await asyncio.sleep(watcher.sound / 48_000)
        sound = watcher.sound
        speaking = asyncio.create_task(speak(session, speech + bytes(10 * 48_000)))
        result["spoken_turn"] = await until(lambda: watcher.heard and watcher.sound > sound)
        speaking.cancel()
        interruptions = watcher.interruptions
        speaking = asyncio.create_task(speak(session, interruption + bytes(10 * 48_000)))
        result["interruption"] = await until(
            lambda: watcher.interruptions > interruptions and len(watcher.heard) > 1
        )
        speaking.cancel()
        ends, sound = watcher.ends, watcher.sound
        await session.send_message("Tell me a long story about a dragon.")
        await until(lambda: watcher.sound > sound + 9_600)
        await session.model.send_event(RealtimeModelSendInterrupt(force_response_cancel=True))
        result["cancel"] = await until(lambda: watcher.ends > ends and "cancelled" in watcher.ended)
        watching.cancel()
    seconds = watcher.sound / 48_000
    return result | {"heard": watcher.heard, "errors": watcher.errors, "seconds": seconds}


async def calling(url: str) -> dict[str, Any]:
    """The model calls a function by itself, and speaks once it has the result."""
    watcher = Watcher()
    async with await begin(url, tools=[get_weather]) as session:
        watching = asyncio.create_task(watcher.watch(session))
        await session.send_message("Tell me the weather for Berlin, please.")
        called = await until(lambda: CALLS)
        answered = await until(lambda: watcher.sound > 9_600)
        watching.cancel()
    return {"tool_call": called and answered, "calls": CALLS, "errors": watcher.errors}


async def main(url: str, speech: bytes, interruption: bytes) -> dict[str, Any]:
    voice, call = await by_voice(url, speech, interruption), await calling(url)
    return voice | call | {"errors": voice["errors"] + call["errors"]}


if __name__ == "__main__":
    url, speech_file, interruption_file = sys.argv[1:]
    outcome = asyncio.run(
        main(url, Path(speech_file).read_bytes(), Path(interruption_file).read_bytes())
    )
    print(json.dumps(outcome))
