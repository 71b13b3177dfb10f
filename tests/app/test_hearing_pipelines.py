"""Where the pipeline hears, the user's sound goes to the Thinker as it is, and no transcript."""

from __future__ import annotations

import base64
import io
from dataclasses import replace

import httpx
import numpy as np
import pytest
import soundfile

from app.realtime.items import Message, Part, PartKind, as_messages, newest
from engine import AudioContent
from tests.app.realtime.doubles import DESCRIPTION, RoteEngine
from tests.app.serving import serving


def said(seconds: float) -> AudioContent:
    """A user's sound."""
    return AudioContent(np.zeros(round(16_000 * seconds), np.float32))


def test_sound_takes_the_place_of_its_words() -> None:
    """Other words of the message stay, and messages without sound are as they were."""
    sound = said(1.0)
    items = [
        Message("a", "user", [Part(PartKind.INPUT_AUDIO, "what is this", said=sound)]),
        Message("b", "assistant", [Part(PartKind.OUTPUT_TEXT, "A tone.")]),
        Message(
            "c",
            "user",
            [
                Part(PartKind.INPUT_TEXT, "And this?"),
                Part(PartKind.INPUT_AUDIO, None, said=sound),
            ],
        ),
        Message("d", "user", [Part(PartKind.INPUT_AUDIO, "written down")]),
    ]
    messages = as_messages("", items)
    assert [message.text for message in messages] == ["", "A tone.", "And this?", "written down"]
    assert [len(message.sounds) for message in messages] == [1, 0, 1, 0]
    assert messages[0].sounds[0] is sound


@pytest.mark.parametrize(("characters", "kept"), [(10_000, 3), (900, 1)])
def test_sound_counts_against_the_history(characters: int, kept: int) -> None:
    """A minute of sound is a long message."""
    items = [
        Message(name, "user", [Part(PartKind.INPUT_AUDIO, "x", said=said(10.0))]) for name in "abc"
    ]
    assert len(newest(as_messages("", items), characters)) == kept


def test_a_recording_in_a_chat_reaches_the_engine_as_sound() -> None:
    """Sample by sample, without an ear."""
    whole = np.random.default_rng(0).integers(-20_000, 20_000, 16_123).astype(np.int16)
    out = io.BytesIO()
    soundfile.write(out, whole, 16_000, format="WAV", subtype="PCM_16")
    data = base64.b64encode(out.getvalue()).decode()
    content = [
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        {"type": "text", "text": "What is this?"},
    ]
    asked = {"model": "rote", "messages": [{"role": "user", "content": content}]}
    engine = RoteEngine(description=replace(DESCRIPTION, hears=True))
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        url = f"{running.base_url}/v1/chat/completions"
        assert httpx.post(url, json=asked, timeout=30).status_code == 200
    (request,) = engine.requests
    assert request.chat is not None
    (message,) = request.chat.messages
    assert message.text == "What is this?"
    (sound,) = message.sounds
    assert sound.sample_rate == 16_000
    assert np.array_equal(sound.samples, whole.astype(np.float32) / 32768)


def test_a_pipeline_that_only_answers_says_so_when_asked_to_read() -> None:
    """And where to go instead."""
    engine = RoteEngine(description=replace(DESCRIPTION, routes=("chat", "chat_text")))
    asked = {"model": "rote", "voice": "alloy", "input": "Read this."}
    with serving(engine, ear=False) as running:  # type: ignore[arg-type]
        answer = httpx.post(f"{running.base_url}/v1/audio/speech", json=asked, timeout=30)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "model"
    assert "/v1/chat/completions" in answer.json()["error"]["message"]
    assert engine.requests == []
