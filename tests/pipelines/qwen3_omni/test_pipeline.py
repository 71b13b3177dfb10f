"""The whole pipeline on the real runtime against the reference: sound and text in, sound out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import (
    AudioContent,
    AudioPayload,
    Chat,
    ChatMessage,
    ErrorCode,
    InvalidRequestError,
    OmniRequest,
    SpeechParameters,
    TextInput,
    TextPayload,
    UsagePayload,
)
from engine.engine import AsyncOmniEngine
from pipelines.qwen3_omni.hearing import hearing_of
from tests.pipelines.qwen3_omni.conversing import (
    Answer,
    conversations,
    reference_answer,
    sound,
)

GREEDY = SpeechParameters(voice="chelsie", temperature=0.0)


@asynccontextmanager
async def running(folder: Path, cache: Path) -> AsyncGenerator[AsyncOmniEngine]:
    """The engine with the tiny checkpoint and the default deployment."""
    engine = await AsyncOmniEngine.start(
        pipeline="qwen3_omni", model=str(folder), cache_folder=cache, compile_ahead=False
    )
    try:
        yield engine
    finally:
        await engine.close()


def asked(name: str, chat: Chat, route: str = "chat") -> OmniRequest:
    """A greedy request."""
    return OmniRequest(name, TextInput(), GREEDY, route=route, chat=chat)


async def answered(
    engine: AsyncOmniEngine, request: OmniRequest, samples: int
) -> tuple[str, np.ndarray, list[UsagePayload]]:
    """The text and the first samples of an answer."""
    text, usages = "", []
    parts = [np.zeros(0, np.float32)]
    async with aclosing(engine.generate(request)) as chunks:
        async for chunk in chunks:
            assert chunk.error is None, chunk.error
            if isinstance(chunk.payload, AudioPayload):
                parts.append(chunk.payload.samples)
            elif isinstance(chunk.payload, TextPayload):
                text += chunk.payload.text
            elif isinstance(chunk.payload, UsagePayload):
                usages.append(chunk.payload)
            else:
                assert chunk.payload is None, "hidden states are not for clients"
            if usages and sum(map(len, parts)) > samples:
                break
    return text, np.concatenate(parts)[:samples], usages


def whole_sound(reference: Qwen3OmniMoeForConditionalGeneration, answer: Answer) -> np.ndarray:
    """The reference's decode of an answer's codes in one piece."""
    with torch.inference_mode():
        made: np.ndarray = reference.code2wav(answer.codes.T[None]).flatten().numpy()
    return made


@pytest.mark.asyncio
async def test_answers_equal_the_reference(
    checkpoint: Path, reference: Qwen3OmniMoeForConditionalGeneration, tmp_path: Path
) -> None:
    """Eight conversations at once: their words, and their sound sample by sample."""
    hearing, chats = hearing_of(checkpoint), conversations()
    answers = [reference_answer(reference, chat, hearing, "chelsie") for chat in chats]
    sounds = [whole_sound(reference, answer) for answer in answers]
    tokenizer = hearing.processor.tokenizer
    async with running(checkpoint, tmp_path) as engine:
        assert engine.description.hears
        made = await asyncio.gather(
            *(
                answered(engine, asked(f"request-{i}", chat), len(wanted))
                for i, (chat, wanted) in enumerate(zip(chats, sounds, strict=True))
            )
        )
        written, silent, _ = await answered(engine, asked("written", chats[2], "chat_text"), 0)
        assert len(silent) == 0
        await refuses(engine)
        await fails_alone(engine)
    for (text, samples, usages), answer, wanted in zip(made, answers, sounds, strict=True):
        expected = tokenizer.decode(answer.tokens, skip_special_tokens=True)
        assert text.rstrip("\ufffd") == expected.rstrip("\ufffd")
        assert usages[0].output_tokens == len(answer.tokens)
        assert samples.shape == wanted.shape
        assert float(np.abs(samples - wanted).max()) < 1e-4 * float(np.abs(wanted).max())
    assert written == made[2][0]


async def refuses(engine: AsyncOmniEngine) -> None:
    """What the pipeline cannot do is said before anything is made."""
    for request, fault in (
        (OmniRequest("a", TextInput.whole("Hello")), "no route 'speech'"),
        (OmniRequest("b", TextInput(), SpeechParameters(voice="x"), route="chat"), "ethan"),
        (OmniRequest("c", TextInput(), SpeechParameters(speed=2.0), route="chat"), "own pace"),
    ):
        with pytest.raises(InvalidRequestError, match=fault):
            await answered(engine, request, 1)
    for chat, fault in (
        (Chat(()), "The conversation is empty"),
        (Chat((ChatMessage("user", "a " * 9000),)), "at most 4095"),
        (Chat((ChatMessage("user", "a"),), tool_choice="required"), "the tools are: none"),
    ):
        async with aclosing(engine.generate(asked("d", chat))) as chunks:
            ends = [chunk async for chunk in chunks]
        # Words and sound are streams of their own.
        for end in ends:
            assert end.final
            assert end.error is not None
            assert end.error.code is ErrorCode.INVALID_REQUEST
            assert fault in end.error.message
        assert ends


async def fails_alone(engine: AsyncOmniEngine) -> None:
    """A sound too short or of another rate fails its request with the reason, and no other."""
    short = AudioContent(np.zeros(100, np.float32))
    fast = AudioContent(sound(1.0, 1).samples, sample_rate=24_000)
    for content, reason in ((short, "at least 400"), (fast, "resample it")):
        chat = Chat((ChatMessage("user", "", sounds=(content,)),))
        with pytest.raises(InvalidRequestError, match=reason):
            await answered(engine, asked("bad", chat), 1)
    text, samples, _ = await answered(engine, asked("good", conversations()[0]), 2_000)
    assert text
    assert len(samples) > 0
