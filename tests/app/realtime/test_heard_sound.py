"""Where the pipeline hears, what the user says reaches the engine as the ear hears it itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.audio.wire_formats import WireFormat
from app.ear.tape import Tape
from tests.app.realtime.conversing import talking
from tests.app.realtime.doubles import DESCRIPTION, RoteEngine
from tests.app.serving import serving
from tests.ears import need_ear
from tests.voices import pcm, silence, synthesized

PIECE = 1920
"""Bytes of 40 ms."""

UNDIVIDED = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}


@pytest.mark.asyncio
async def test_a_turn_reaches_the_engine_sample_by_sample() -> None:
    need_ear()
    sound = pcm(silence(0.3)) + pcm(synthesized("What is the weather like today?"))
    tape = Tape()
    pieces = [sound[at : at + PIECE] for at in range(0, len(sound), PIECE)]
    engine = RoteEngine(description=replace(DESCRIPTION, hears=True))
    with serving(engine, ear=True) as running:  # type: ignore[arg-type]
        async with talking(running.websocket_url) as talk:
            await talk.send("session.update", session=UNDIVIDED)
            await talk.until("session.updated")
            for piece in pieces:
                tape.append(piece, WireFormat.PCM)
                await talk.append(piece)
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
