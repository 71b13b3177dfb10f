"""OpenAI's own realtime client against the real engine: every way that a conversation goes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from tests.app.realtime.conversing import check
from tests.ears import need_ear
from tests.voices import pcm, recorded, silence, synthesized

pytestmark = pytest.mark.asyncio

PATIENCE = 90.0
"""Seconds; test machines are busy."""

PIECE = 1920


class Conversation:
    """A connection that remembers its events and checks each by the SDK's types."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[Any] = []

    async def until(self, kind: str) -> Any:
        async with asyncio.timeout(PATIENCE):
            while True:
                event = await self.connection.recv()
                check(event.model_dump(exclude_unset=True))
                self.events.append(event)
                if event.type == kind:
                    return event

    async def say(self, text: str) -> None:
        await self.connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            }
        )

    async def speak(self, sound: bytes) -> None:
        """As fast as a microphone would."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        for number, at in enumerate(range(0, len(sound), PIECE)):
            piece = base64.b64encode(sound[at : at + PIECE]).decode()
            await self.connection.input_audio_buffer.append(audio=piece)
            await asyncio.sleep(max(0.0, start + (number + 1) * 0.04 - loop.time()))

    def seconds(self) -> float:
        deltas = [e.delta for e in self.events if e.type == "response.output_audio.delta"]
        return sum(len(base64.b64decode(delta)) for delta in deltas) / 48_000


@asynccontextmanager
async def conversing(base_url: str, **session: Any) -> AsyncGenerator[Conversation]:
    client = openai.AsyncOpenAI(base_url=f"{base_url}/v1", api_key="none")
    async with client.realtime.connect(model="gpt-realtime") as connection:
        conversation = Conversation(connection)
        await conversation.until("session.created")
        settings = {
            "type": "realtime",
            "instructions": "Answer in one short sentence.",
            "audio": {"input": {"transcription": {"model": "whisper-1"}}},
            **session,
        }
        await connection.session.update(session=settings)  # type: ignore[arg-type]
        await conversation.until("session.updated")
        yield conversation


async def test_a_text_turn(conversing_server: str) -> None:
    async with conversing(conversing_server) as talk:
        await talk.say("What is the capital of France?")
        await talk.connection.response.create()
        done = await talk.until("response.done")
        assert done.response.status == "completed"
        transcript = done.response.output[0].content[0].transcript
        assert "Paris" in transcript
        assert 0.5 < talk.seconds() < 30
        assert done.response.usage.output_token_details.audio_tokens > 0
        await talk.say("Thank you.")
        await talk.connection.response.create()
        done = await talk.until("response.done")
        assert done.response.usage.input_token_details.cached_tokens > 0


async def test_an_answer_in_an_interrupted_ones_place_does_not_compute_the_history_again(
    conversing_server: str,
) -> None:
    async with conversing(conversing_server, max_output_tokens=40) as talk:
        await talk.say("Here is a list: " + ", ".join(f"item number {n}" for n in range(60)) + ".")
        await talk.connection.response.create()
        await talk.until("response.output_audio.delta")
        await talk.connection.response.cancel()
        await talk.connection.response.create()
        cancelled = await talk.until("response.done")
        assert cancelled.response.status == "cancelled"
        done = await talk.until("response.done")
        assert done.response.status in ("completed", "incomplete")
        usage = done.response.usage
        assert usage.input_token_details.cached_tokens > usage.input_tokens / 2


async def test_a_spoken_turn(conversing_server: str) -> None:
    need_ear()
    async with conversing(conversing_server) as talk:
        sound = silence(0.4), synthesized("Tell me something about the sea."), silence(1.5)
        speaking = asyncio.create_task(talk.speak(b"".join(pcm(part) for part in sound)))
        await talk.until("input_audio_buffer.speech_started")
        done = await talk.until("response.done")
        await speaking
        assert done.response.status == "completed"
        heard = [e for e in talk.events if e.type.endswith("input_audio_transcription.completed")]
        assert "sea" in heard[0].transcript.lower()
        assert talk.seconds() > 0.5


async def test_a_recorded_person_with_semantic_turns(conversing_server: str) -> None:
    need_ear()
    detection = {"type": "semantic_vad", "eagerness": "high"}
    audio = {"input": {"transcription": {"model": "whisper-1"}, "turn_detection": detection}}
    async with conversing(conversing_server, audio=audio, max_output_tokens=20) as talk:
        name = "librivox/sense_and_sensibility_01_austen_64kb-0930.wav"
        sound = pcm(silence(0.3)) + pcm(recorded(name)) + pcm(silence(3.0))
        speaking = asyncio.create_task(talk.speak(sound))
        heard = await talk.until("conversation.item.input_audio_transcription.completed")
        assert "amiable" in heard.transcript.lower()
        await talk.until("response.done")
        await speaking


async def test_an_interruption(conversing_server: str) -> None:
    need_ear()
    async with conversing(conversing_server, instructions="Tell long stories.") as talk:
        await talk.say("Tell me a long story about a dragon and a knight.")
        await talk.connection.response.create()
        first = await talk.until("response.output_audio.delta")
        sound = pcm(synthesized("Please stop now, I want to ask something else."))
        speaking = asyncio.create_task(talk.speak(sound + pcm(silence(1.0))))
        await talk.until("input_audio_buffer.speech_started")
        position = len(talk.events)
        await talk.connection.conversation.item.truncate(
            item_id=first.item_id, content_index=0, audio_end_ms=300
        )
        await talk.until("conversation.item.truncated")
        await talk.until("response.created")
        await speaking
        after = talk.events[position:]
        stale = [e for e in after if e.type.endswith("delta") and e.item_id == first.item_id]
        assert stale == [], "nothing of an interrupted answer is sent"
        await talk.connection.conversation.item.retrieve(item_id=first.item_id)
        kept = await talk.until("conversation.item.retrieved")
        assert len(kept.item.content[0].transcript.split()) <= 2


async def test_cancelling(conversing_server: str) -> None:
    async with conversing(conversing_server, instructions="Tell long stories.") as talk:
        await talk.say("Tell me a long story about a dragon and a knight.")
        await talk.connection.response.create()
        await talk.until("response.output_audio_transcript.delta")
        await talk.connection.response.cancel()
        done = await talk.until("response.done")
        assert done.response.status in ("cancelled", "completed")
        await talk.say("Say hello.")
        await talk.connection.response.create(response={"output_modalities": ["text"]})
        done = await talk.until("response.done")
        assert done.response.status in ("completed", "incomplete")
        assert done.response.output[0].content[0].text


async def test_a_tool_call(conversing_server: str) -> None:
    tool = {
        "type": "function",
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}},
            "required": ["city"],
        },
    }
    async with conversing(conversing_server, tools=[tool], tool_choice="required") as talk:
        await talk.say("What is the weather in Paris?")
        await talk.connection.response.create()
        done = await talk.until("response.done")
        call = done.response.output[0]
        assert call.type == "function_call"
        assert call.name == "get_weather"
        assert isinstance(json.loads(call.arguments)["city"], str)
        await talk.connection.conversation.item.create(
            item={
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": '{"weather": "sunny"}',
            }
        )
        await talk.connection.response.create(response={"tool_choice": "none"})
        done = await talk.until("response.done")
        assert done.response.status == "completed"
        assert done.response.output[0].type == "message"
