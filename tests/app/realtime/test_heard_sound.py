"""Where the pipeline hears, what the user says reaches the engine as the ear hears it itself.

Neither does the engine have to wait for the turn's end to hear, nor the answer for the words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from app.audio.pcm import FloatSamples
from app.audio.wire_formats import WireFormat
from app.ear.ear import Ear
from app.ear.findings import NO_HINTS, Hints
from app.ear.tape import Tape
from tests.app.realtime.conversing import Talk, talking
from tests.app.realtime.doubles import DESCRIPTION, RoteEngine
from tests.app.realtime.test_spoken_turns import QUESTION, speak, turn
from tests.app.serving import serving
from tests.ears import need_ear
from tests.voices import pcm, silence, synthesized

pytestmark = pytest.mark.asyncio

PIECE = 1920
"""Bytes of 40 ms."""

UNDIVIDED = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}
HEARS = replace(DESCRIPTION, hears=True, sound_window=0.5)


class LateWords:
    """Words of turns that are found out only when the test allows it, from any thread."""

    def __init__(self, *, none: bool = False) -> None:
        self._known = False
        self._none = none

    def find_out(self) -> None:
        self._known = True

    @asynccontextmanager
    async def awaited(self) -> AsyncGenerator[None]:
        recognize, words = Ear.recognize, self

        async def late(ear: Ear, sound: FloatSamples, hints: Hints = NO_HINTS) -> str:
            said = await recognize(ear, sound, hints)
            while not words._known:  # noqa: ASYNC110 - the loop is the server's, not the test's
                await asyncio.sleep(0.005)
            return "" if words._none else said

        with mock.patch.object(Ear, "recognize", late):
            yield


def engine_that_hears(pace: float = 0.0) -> RoteEngine:
    need_ear()
    return RoteEngine(pace=pace, description=HEARS)


async def asked(talk: Talk, settings: dict[str, object]) -> None:
    await talk.send("session.update", session=settings)
    await talk.until("session.updated")
    await speak(talk, pcm(silence(0.3)) + pcm(synthesized(QUESTION)) + pcm(silence(1.0)), pace=4)


async def test_a_turn_reaches_the_engine_sample_by_sample() -> None:
    sound = pcm(silence(0.3)) + pcm(synthesized("What is the weather like today?"))
    tape = Tape()
    pieces = [sound[at : at + PIECE] for at in range(0, len(sound), PIECE)]
    engine = engine_that_hears()
    with serving(engine, ear=True) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            await talk.send("session.update", session=UNDIVIDED)
            await talk.until("session.updated")
            for piece in pieces:
                tape.append(piece, WireFormat.PCM)
                await talk.append(piece)
            while not engine.heard:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await talk.send("input_audio_buffer.commit")
            await talk.send("response.create")
            await talk.until("response.done", 30)
    tape.flush()
    (request,) = engine.requests
    assert request.chat is not None
    message = request.chat.messages[-1]
    assert message.text == "", "the words of sound that is heard are not read as well"
    (heard,) = message.sounds
    assert heard.sample_rate == 16_000
    assert np.array_equal(heard.samples, tape.cut(0, tape.end))
    for beginning in engine.heard:
        assert len(beginning.samples) > 8_000
        assert np.array_equal(beginning.samples, heard.samples[: len(beginning.samples)])


async def test_beginnings_of_turns_that_the_ear_finds_begin_where_the_turns_do() -> None:
    engine = engine_that_hears()
    with serving(engine, ear=True) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            await asked(talk, turn())
            await talk.until("response.done", 20)
    (request,) = engine.requests
    assert request.chat is not None
    (heard,) = request.chat.messages[-1].sounds
    assert len(engine.heard) >= 2, "the turn lasts longer than a second"
    lengths = [len(beginning.samples) for beginning in engine.heard]
    assert lengths == sorted(lengths)
    for beginning in engine.heard:
        assert np.array_equal(beginning.samples, heard.samples[: len(beginning.samples)])


async def test_without_windows_or_an_answer_nothing_is_heard_early() -> None:
    need_ear()
    for description, query in (
        (replace(HEARS, sound_window=None), "model=rote"),
        (replace(HEARS, hears=False), "model=rote"),
        (HEARS, "intent=transcription"),
    ):
        engine = RoteEngine(description=description)
        with serving(engine, ear=True) as running:  # type: ignore[arg-type]
            async with talking(running.websocket_url, query=query) as talk:
                await speak(talk, pcm(silence(0.3)) + pcm(synthesized(QUESTION)), pace=4)
                await speak(talk, pcm(silence(1.0)), pace=4)
                await talk.until("conversation.item.done", 20)
        assert engine.heard == []


@pytest.mark.parametrize("settings", [turn(), UNDIVIDED], ids=["the ear's", "the client's"])
async def test_the_answer_does_not_wait_for_the_words(settings: dict[str, object]) -> None:
    words, engine = LateWords(), engine_that_hears()
    async with words.awaited():
        with serving(engine, ear=True) as running:  # type: ignore[arg-type]
            async with talking(running.websocket_url) as talk:
                transcribed = {"transcription": {"model": "whisper-1"}}
                audio = {"input": {**settings["audio"]["input"], **transcribed}}  # type: ignore[index]
                await asked(talk, {"type": "realtime", "audio": audio})
                if settings is UNDIVIDED:
                    await talk.send("input_audio_buffer.commit")
                    await talk.send("response.create")
                done = await talk.until("response.done", 20)
                assert done["response"]["status"] == "completed"
                assert done["response"]["output"]
                assert not any("transcription" in kind for kind in talk.kinds())
                words.find_out()
                completed = await talk.until(
                    "conversation.item.input_audio_transcription.completed", 20
                )
                assert "weather" in completed["transcript"].lower()
                await talk.rest()
    assert len(engine.requests) == 1
    assert engine.live == set()


async def test_a_cough_whose_answer_has_not_begun_ends_it_without_a_word() -> None:
    words, engine = LateWords(none=True), engine_that_hears(pace=30.0)
    async with words.awaited():
        with serving(engine, ear=True) as running:  # type: ignore[arg-type]
            async with talking(running.websocket_url) as talk:
                await asked(talk, turn())
                await talk.until("response.created", 20)
                while not engine.live:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                words.find_out()
                done = await talk.until("response.done", 20)
                assert done["response"]["status"] == "completed"
                assert done["response"]["output"] == []
                assert await talk.rest() == []
    (request,) = engine.requests
    assert engine.aborted == [request.request_id]
    assert engine.live == set()


async def test_a_cough_whose_answer_has_begun_cuts_it_off() -> None:
    words, engine = LateWords(none=True), engine_that_hears(pace=5.0)
    async with words.awaited():
        with serving(engine, ear=True) as running:  # type: ignore[arg-type]
            async with talking(running.websocket_url) as talk:
                await asked(talk, turn())
                await talk.until("response.output_audio.delta", 20)
                words.find_out()
                done = await talk.until("response.done", 20)
                assert done["response"]["status"] == "cancelled"
                assert done["response"]["status_details"]["reason"] == "turn_detected"
                assert done["response"]["output"][0]["status"] == "incomplete"
                assert await talk.rest() == []
                engine.pace = 0.0
                await talk.say("And now?")
                await talk.send("response.create")
                done = await talk.until("response.done", 20)
                assert done["response"]["status"] == "completed"
    assert engine.live == set()
