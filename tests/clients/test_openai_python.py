"""The openai Python SDK against a running server."""

from __future__ import annotations

import asyncio
import base64
import json

import numpy as np
import openai
import pytest

from tests.app.decoding import decode
from tests.clients.speaking import SENTENCE

FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm"]


@pytest.fixture
def client(running_server: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{running_server}/v1", api_key="unused", max_retries=0, timeout=120
    )


def _speak(client: openai.OpenAI, **changes: object) -> bytes:
    parameters: dict[str, object] = {"model": "tts-1", "voice": "alloy", "input": SENTENCE}
    return client.audio.speech.create(**{**parameters, **changes}).read()  # type: ignore[arg-type]


def _samples(data: bytes, audio_format: str) -> float:
    """How many samples at 24 kHz a client gets."""
    if audio_format == "pcm":
        return len(data) / 2
    decoded, rate = decode(data)
    return len(decoded) * 24_000 / rate


DECLARED_DELAY = {"mp3": 1105, "opus": 0, "aac": 1024, "flac": 0, "wav": 0}
PADDING = {"mp3": 2 * 1152, "opus": 0, "aac": 2 * 1024, "flac": 0, "wav": 0}


@pytest.mark.parametrize("audio_format", FORMATS)
def test_every_format_decodes_to_the_samples_of_pcm(
    client: openai.OpenAI, audio_format: str
) -> None:
    seed = {"extra_body": {"seed": 11}}
    expected = len(_speak(client, response_format="pcm", **seed)) / 2
    data = _speak(client, response_format=audio_format, **seed)
    assert expected > 24_000, "the sentence takes more than a second"
    if audio_format == "pcm":
        assert len(data) / 2 == expected
    else:
        extra = _samples(data, audio_format) - expected
        delay = DECLARED_DELAY[audio_format]
        assert delay <= extra <= delay + PADDING[audio_format]


@pytest.mark.parametrize("audio_format", ["pcm", "wav", "flac"])
def test_streamed_equals_whole(client: openai.OpenAI, audio_format: str) -> None:
    streamed = _speak(client, response_format=audio_format, extra_body={"seed": 5})
    whole = _speak(client, response_format=audio_format, extra_body={"seed": 5, "stream": False})
    if audio_format == "pcm":
        first = np.frombuffer(streamed, "<i2").astype(np.int32)
        second = np.frombuffer(whole, "<i2").astype(np.int32)
    else:
        first, second = ((decode(data)[0] * 32768).astype(np.int32) for data in (streamed, whole))
    assert len(first) == len(second)
    assert np.abs(first - second).max() <= 2


def test_streaming_response_yields_audio_before_the_end(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts",
        voice="marin",
        input=SENTENCE * 3,
        response_format="pcm",
        instructions="Speak cheerfully.",
        speed=1.0,
    ) as response:
        assert response.headers["content-type"] == "audio/pcm"
        parts = list(response.iter_bytes())
    assert len(parts) > 3
    assert sum(map(len, parts)) % 2 == 0


def test_speech_is_heard_and_not_clipped(client: openai.OpenAI) -> None:
    samples = np.frombuffer(_speak(client, response_format="pcm"), "<i2") / 32768
    assert 0.02 < np.sqrt(np.mean(samples**2)) < 0.5
    assert np.mean(np.abs(samples) > 0.999) < 0.001


@pytest.mark.parametrize("text", ["Yes.", "5", "No"])
def test_one_word_is_audible(client: openai.OpenAI, text: str) -> None:
    samples = np.frombuffer(_speak(client, response_format="pcm", input=text), "<i2") / 32768
    assert len(samples) > 0.15 * 24_000
    assert np.abs(samples).max() > 0.05


def test_speed_changes_the_duration(client: openai.OpenAI) -> None:
    normal, fast, slow = (
        len(_speak(client, response_format="pcm", speed=speed, extra_body={"seed": 3}))
        for speed in (1.0, 2.0, 0.5)
    )
    assert fast < 0.7 * normal
    assert slow > 1.5 * normal


def test_voices_differ(client: openai.OpenAI) -> None:
    seed = {"extra_body": {"seed": 3}}
    alloy = _speak(client, response_format="pcm", voice="alloy", **seed)
    onyx = _speak(client, response_format="pcm", voice={"id": "onyx"}, **seed)
    assert alloy != onyx


@pytest.mark.parametrize(
    "voice",
    [
        "alloy",
        "ash",
        "ballad",
        "cedar",
        "coral",
        "echo",
        "fable",
        "marin",
        "nova",
        "onyx",
        "sage",
        "shimmer",
        "verse",
    ],
)
def test_openais_thirteen_names_are_known(client: openai.OpenAI, voice: str) -> None:
    assert _speak(client, input="Yes.", voice=voice, response_format="pcm")


def test_events(client: openai.OpenAI) -> None:
    body = {"extra_body": {"seed": 2}}
    bare = _speak(client, response_format="pcm", **body)
    text = _speak(client, response_format="pcm", stream_format="sse", **body).decode()
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert events[-1]["type"] == "speech.audio.done"
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    parts = [base64.b64decode(event["audio"], validate=True) for event in events[:-1]]
    assert len(b"".join(parts)) == len(bare)
    assert len(parts) > 2


def test_word_times_are_verbatim_and_in_order(client: openai.OpenAI) -> None:
    text = "On 3 May, Dr. Smith paid $5.20 for “tea”!"
    body = _speak(
        client,
        input=text,
        response_format="pcm",
        stream_format="sse",
        extra_body={"timestamps": "word"},
    ).decode()
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    words = [event for event in events if event["type"] == "speech.word"]
    seconds = sum(
        len(base64.b64decode(event["audio"])) / 48_000
        for event in events
        if event["type"] == "speech.audio.delta"
    )
    assert len(words) >= 8
    for word in words:
        assert text[word["start_character"] : word["end_character"]] == word["word"]
        assert 0 <= word["start"] <= word["end"] <= seconds + 0.05
    starts = [word["start"] for word in words]
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("changes", "error", "param"),
    [
        ({"voice": "nobody"}, openai.BadRequestError, "voice"),
        ({"speed": 5.0}, openai.BadRequestError, "speed"),
        ({"input": "   "}, openai.BadRequestError, "input"),
        ({"input": "🙂🙂"}, openai.BadRequestError, "input"),
        ({"input": "?!"}, openai.BadRequestError, "input"),
        ({"input": "a" * 4097}, openai.BadRequestError, "input"),
        ({"response_format": "ogg"}, openai.BadRequestError, "response_format"),
        ({"model": "whisper-1"}, openai.NotFoundError, "model"),
    ],
)
def test_errors(
    client: openai.OpenAI, changes: dict[str, object], error: type[openai.APIError], param: str
) -> None:
    with pytest.raises(error) as raised:
        _speak(client, **changes)
    assert raised.value.param == param


def test_models_and_voices(client: openai.OpenAI) -> None:
    assert "lark" in [model.id for model in client.models.list()]
    assert client.models.retrieve("tts-1").id == "tts-1"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nothing")


@pytest.mark.asyncio
async def test_many_clients_at_once(running_server: str) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{running_server}/v1", api_key="unused", max_retries=2, timeout=120
    ) as client:

        async def speak(index: int) -> int:
            response = await client.audio.speech.create(
                model="tts-1",
                voice="alloy",
                input=f"This is number {index}.",
                response_format=FORMATS[index % 6],  # type: ignore[arg-type]
            )
            return len(response.content)

        sizes = await asyncio.gather(*(speak(index) for index in range(12)))
    assert all(sizes)
