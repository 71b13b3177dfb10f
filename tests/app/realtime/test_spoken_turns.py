"""Turns that the user speaks, heard by the real ear; the answers come by rote."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import soxr

from app.audio.wire_formats import WireFormat, encode
from tests.app.realtime.conversing import Talk, sound_of, talking
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.ears import need_ear
from tests.voices import pcm, recorded, silence, synthesized

pytestmark = pytest.mark.asyncio

TURN_ORDER = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
    "response.created",
]

PIECE = 1920
"""Bytes of 40 ms."""


@pytest.fixture(scope="module")
def hearing() -> Generator[Serving]:
    """A server that listens, and whose engine takes 20 ms for a word of 200 ms."""
    need_ear()
    with serving(RoteEngine(pace=0.02), ear=True) as running:  # type: ignore[arg-type]
        yield running


async def speak(talk: Talk, sound: bytes, *, pace: float = 1.0) -> None:
    """Sends sound piece by piece; at a pace of 1 as fast as a microphone would."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number, at in enumerate(range(0, len(sound), PIECE)):
        await talk.append(sound[at : at + PIECE])
        if pace:
            await asyncio.sleep(max(0.0, start + (number + 1) * 0.04 / pace - loop.time()))


def turn(**changes: Any) -> dict[str, Any]:
    return {
        "type": "realtime",
        "audio": {
            "input": {
                "transcription": {"model": "whisper-1"},
                "turn_detection": {"type": "server_vad", **changes},
            }
        },
    }


SEMANTIC = {
    "type": "realtime",
    "audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}},
}

QUESTION = "What is the weather like today?"


async def test_a_spoken_turn_is_heard_and_answered(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn())
        await talk.until("session.updated")
        sound = pcm(silence(0.5)) + pcm(synthesized(QUESTION)) + pcm(silence(1.2))
        speaking = asyncio.create_task(speak(talk, sound))
        done = await talk.until("response.done", 20)
        await speaking
        kinds = [k for k in talk.kinds(2) if k in TURN_ORDER]
        assert kinds[:6] == TURN_ORDER
        started = next(e for e in talk.events if e["type"].endswith("speech_started"))
        stopped = next(e for e in talk.events if e["type"].endswith("speech_stopped"))
        committed = next(e for e in talk.events if e["type"].endswith("committed"))
        assert started["item_id"] == stopped["item_id"] == committed["item_id"]
        assert 0 <= started["audio_start_ms"] <= 500
        completed = next(e for e in talk.events if e["type"].endswith("transcription.completed"))
        assert "weather" in completed["transcript"].lower()
        assert completed["usage"]["type"] == "duration"
        answer = done["response"]["output"][0]["content"][0]["transcript"]
        assert answer == f"You said: {completed['transcript']}"


@pytest.mark.parametrize("kind", ["server_vad", "semantic_vad"])
async def test_a_turn_ends_although_the_client_falls_silent(hearing: Serving, kind: str) -> None:
    settings = turn() if kind == "server_vad" else SEMANTIC
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=settings)
        await talk.until("session.updated")
        question = synthesized(QUESTION)
        last_word = int(np.flatnonzero(np.abs(question) > 0.05)[-1])
        await speak(talk, pcm(silence(0.5)) + pcm(question[:last_word]))
        stopped = await talk.until("input_audio_buffer.speech_stopped", 15)
        done = await talk.until("response.done", 20)
        assert "weather" in done["response"]["output"][0]["content"][0]["transcript"].lower()
        # What comes later is heard as what it is.
        await speak(talk, pcm(silence(0.5)) + pcm(question) + pcm(silence(4.5)), pace=4)
        started = await talk.until("input_audio_buffer.speech_started")
        assert started["audio_start_ms"] >= stopped["audio_end_ms"]
        await talk.until("response.done", 20)


async def test_real_people_are_understood(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn(silence_duration_ms=700))
        name = "librivox/sense_and_sensibility_01_austen_64kb-0930.wav"
        sound = pcm(silence(0.3)) + pcm(recorded(name)) + pcm(silence(1.5))
        await speak(talk, sound, pace=4)
        completed = await talk.until("conversation.item.input_audio_transcription.completed", 20)
        assert "might even have been made amiable himself" in completed["transcript"].lower()


async def test_speech_interrupts_an_answer(hearing: Serving) -> None:
    engine = hearing.engine
    assert isinstance(engine, RoteEngine)
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn())
        await talk.say("LONG")
        await talk.send("response.create")
        first = await talk.until("response.output_audio.delta")
        speaking = asyncio.create_task(
            speak(talk, pcm(synthesized("Stop it please, I have another question.")))
        )
        started = await talk.until("input_audio_buffer.speech_started", 10)
        position = len(talk.events)
        await talk.rest(0.5)
        await speaking
        after = [e for e in talk.events[position:] if e.get("response_id") == first["response_id"]]
        assert not any(e["type"].endswith("delta") for e in after)
        item = next(e["item"] for e in talk.events if e["type"] == "response.output_item.added")
        await talk.send("conversation.item.retrieve", item_id=item["id"])
        retrieved = await talk.until("conversation.item.retrieved")
        heard = retrieved["item"]["content"][0]["transcript"].split()
        seconds = len(sound_of(talk.events, item_id=item["id"])) / 48_000
        assert 0 < len(heard) < 50
        assert len(heard) <= seconds / 0.2 + 1
        assert started["item_id"]


async def test_a_short_sound_does_not_interrupt(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn())
        await talk.say("LONG")
        await talk.send("response.create")
        await talk.until("response.output_audio.delta")
        mumble = synthesized("yes")[: int(0.3 * 24_000)]
        await speak(talk, pcm(silence(0.2)) + pcm(mumble) + pcm(silence(0.8)))
        await talk.until("response.done", 10)
        assert "input_audio_buffer.speech_started" not in talk.kinds()


async def test_the_client_ends_turns_in_manual_mode(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        session = turn()
        session["audio"]["input"]["turn_detection"] = None
        await talk.send("session.update", session=session)
        await talk.until("session.updated")
        await talk.send("input_audio_buffer.clear")
        await talk.until("input_audio_buffer.cleared")
        await speak(talk, pcm(synthesized(QUESTION)), pace=0)
        await talk.send("input_audio_buffer.commit")
        committed = await talk.until("input_audio_buffer.committed")
        await talk.send("response.create")
        done = await talk.until("response.done", 20)
        answer = done["response"]["output"][0]["content"][0]["transcript"]
        assert "weather" in answer.lower()
        assert "input_audio_buffer.speech_started" not in talk.kinds()
        await talk.send("input_audio_buffer.commit", event_id="empty")
        error = await talk.until("error")
        assert error["error"]["code"] == "input_audio_buffer_commit_empty"
        assert error["error"]["event_id"] == "empty"
        assert committed["previous_item_id"] is None


async def test_semantic_turn_ends(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        session = turn()
        session["audio"]["input"]["turn_detection"] = {
            "type": "semantic_vad",
            "eagerness": "high",
        }
        await talk.send("session.update", session=session)
        name = "librivox/sense_and_sensibility_01_austen_64kb-0920.wav"
        speaking = asyncio.create_task(
            speak(talk, pcm(silence(0.3)) + pcm(recorded(name)) + pcm(silence(3.0)), pace=1)
        )
        stopped = await talk.until("input_audio_buffer.speech_stopped", 20)
        assert stopped["audio_end_ms"] > 5000
        await talk.until("response.done", 20)
        await speaking


async def test_g711_in(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        session = turn()
        session["audio"]["input"]["format"] = {"type": "audio/pcmu"}
        await talk.send("session.update", session=session)
        samples = soxr.resample(synthesized(QUESTION), 24_000, 8_000)
        quiet = bytes([0xFF]) * 8000
        await speak(talk, quiet + encode(samples, WireFormat.MU_LAW) + quiet, pace=0)
        completed = await talk.until("conversation.item.input_audio_transcription.completed", 20)
        assert "weather" in completed["transcript"].lower()


async def test_without_create_response_a_turn_stays_unanswered(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn(create_response=False))
        await speak(talk, pcm(synthesized(QUESTION)) + pcm(silence(1.0)), pace=0)
        await talk.until("conversation.item.input_audio_transcription.completed", 20)
        assert "response.created" not in [e["type"] for e in await talk.rest()]


async def test_a_transcription_session_makes_no_responses(hearing: Serving) -> None:
    async with talking(hearing.websocket_url, query="intent=transcription") as talk:
        assert talk.events[0]["session"]["type"] == "transcription"
        await speak(talk, pcm(synthesized(QUESTION)) + pcm(silence(1.0)), pace=0)
        completed = await talk.until("conversation.item.input_audio_transcription.completed", 20)
        assert "weather" in completed["transcript"].lower()
        assert "response.created" not in [e["type"] for e in await talk.rest()]
        await talk.send("response.create", event_id="wrong")
        error = await talk.until("error")
        assert error["error"]["event_id"] == "wrong"


async def test_silence_after_an_answer_times_out(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn(idle_timeout_ms=1000))
        await talk.say("hello")
        await talk.send("response.create")
        await talk.until("response.done")
        await talk.until("input_audio_buffer.timeout_triggered", 10)
        committed = await talk.until("input_audio_buffer.committed")
        await talk.until("conversation.item.done")
        await talk.until("response.created")
        assert committed["item_id"]


async def test_a_recording_in_an_item_is_understood(hearing: Serving) -> None:
    async with talking(hearing.websocket_url) as talk:
        audio = base64.b64encode(pcm(synthesized(QUESTION))).decode()
        content = [{"type": "input_audio", "audio": audio}]
        item = {"type": "message", "role": "user", "content": content}
        await talk.send("conversation.item.create", item=item)
        await talk.send("response.create")
        done = await talk.until("response.done", 20)
        assert "weather" in done["response"]["output"][0]["content"][0]["transcript"].lower()
