"""The Thinker reads a turn before it is over, and only while it has nothing else to do."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from tests.app.realtime.conversing import talking
from tests.app.realtime.doubles import RoteEngine
from tests.app.realtime.test_spoken_turns import QUESTION, speak, turn
from tests.app.serving import Serving, serving
from tests.ears import need_ear
from tests.voices import pcm, silence, synthesized

pytestmark = pytest.mark.asyncio


@pytest.fixture
def hearing() -> Generator[Serving]:
    need_ear()
    with serving(RoteEngine(pace=0.02), ear=True) as running:  # type: ignore[arg-type]
        yield running


async def test_the_same_words_are_read_and_then_answered(hearing: Serving) -> None:
    engine = hearing.engine
    assert isinstance(engine, RoteEngine)
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn(silence_duration_ms=2500))
        await talk.until("session.updated")
        sound = pcm(silence(0.3)) + pcm(synthesized(QUESTION)) + pcm(silence(3.2))
        speaking = asyncio.create_task(speak(talk, sound))
        await talk.until("response.done", 20)
        await speaking
    *ahead, answered = engine.requests
    assert ahead, "nothing was read ahead"
    assert ahead[-1].chat is not None
    assert answered.chat is not None
    assert ahead[-1].chat.messages == answered.chat.messages
    assert ahead[-1].chat.max_tokens == 1
    assert ahead[-1].route == "chat_text"
    assert ahead[-1].session is None, "it must not fence the session's own requests"
    assert engine.live == set()


async def test_nothing_is_read_ahead_while_others_are_served(hearing: Serving) -> None:
    engine = hearing.engine
    assert isinstance(engine, RoteEngine)
    async with talking(hearing.websocket_url) as talk:
        await talk.send("session.update", session=turn())
        await talk.until("session.updated")
        engine.live.add("somebody's")
        await speak(talk, pcm(silence(0.3)) + pcm(synthesized(QUESTION)) + pcm(silence(1.0)))
        await talk.until("response.done", 20)
    assert [request.chat.max_tokens for request in engine.requests if request.chat] == [None]
