"""The whole pipeline against the reference's `generate`: words, codes and sound."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import pytest_asyncio
import torch
import yaml
from PIL import Image
from transformers import AutoProcessor, Qwen2_5OmniForConditionalGeneration

from engine import (
    Chat,
    ChatMessage,
    OmniRequest,
    PictureContent,
    SpeechParameters,
    TextInput,
)
from engine.chunk import TextPayload
from engine.engine import AsyncOmniEngine
from engine.request import AudioContent
from pipelines.qwen import prompts
from tests.pipelines.qwen2_5_omni.overhearing import MOST_CODES, Overheard, running, samples_of
from tests.toys import assert_empty, collect

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER_TOKENS = 12

DEPLOYMENT: dict[str, Any] = {
    "stages": {
        "thinker": {"max_requests": 12, "max_steps": 512, "compile": "never"},
        "talker": {
            "max_requests": 12,
            "max_steps": 512,
            "compile": "never",
            "input_limit": 256,
        },
        # In one piece, as the reference does it.
        "denoiser": {
            "max_requests": 12,
            "input_limit": 128,
            "diffusion": {"look_ahead_blocks": None},
        },
        "vocoder": {"max_requests": 12, "input_limit": 96},
    },
    "admission": {"max_running": 12},
}


def noise(seed: int, seconds: float) -> AudioContent:
    samples = 0.1 * np.random.default_rng(seed).standard_normal(int(16_000 * seconds))
    return AudioContent(samples.astype(np.float32))


def picture(seed: int, width: int, height: int) -> PictureContent:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return PictureContent(pixels)


def conversations() -> list[tuple[ChatMessage, ...]]:
    system = ChatMessage("system", "You speak.")
    said = [
        ChatMessage("user", "hi", pictures=(picture(1, 150, 100),)),
        ChatMessage("user", "Tell me of birds."),
        ChatMessage("user", "and now?", (), None, (noise(1, 0.5),), (picture(2, 60, 220),)),
        ChatMessage("user", "", sounds=(noise(2, 1.3),)),
        ChatMessage("user", "A somewhat longer question, asked in one breath."),
        ChatMessage("user", "both", sounds=(noise(3, 0.4), noise(4, 2.2))),
        ChatMessage("user", "1 2 3"),
        ChatMessage("user", "the end", sounds=(noise(5, 0.8),)),
    ]
    return [(system, message) for message in said]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(
    overheard: Overheard, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AsyncOmniEngine]:
    folder = tmp_path_factory.mktemp("engine")
    deploy = folder / "deploy.yaml"
    deploy.write_text(yaml.safe_dump(DEPLOYMENT))
    async with running(checkpoint, folder, deploy) as engine:
        yield engine


class Expected:
    """What the reference generates, one request at a time."""

    def __init__(self, model: Qwen2_5OmniForConditionalGeneration, checkpoint: Path) -> None:
        self._model = model
        self._processor = AutoProcessor.from_pretrained(checkpoint)

    def answer(
        self, messages: tuple[ChatMessage, ...], seed: int, voice: str
    ) -> tuple[list[int], list[int], np.ndarray]:
        """Words' tokens, codes and samples."""
        text = self._processor.apply_chat_template(
            [prompts.rendered_message(message) for message in messages],
            add_generation_prompt=True,
            tokenize=False,
        )
        sounds = [sound.samples for message in messages for sound in message.sounds]
        seen = [
            Image.fromarray(picture.pixels) for message in messages for picture in message.pictures
        ]
        inputs = dict(
            self._processor(
                text=text, audio=sounds or None, images=seen or None, return_tensors="pt"
            )
        )
        if seen:
            # Else `generate` gives them to the Talker, too, which does not take them.
            inputs["thinker_pixel_values"] = inputs.pop("pixel_values")
        talker = self._model.talker
        codes: list[int] = []

        # `generate` looks at the names of what it calls.
        def masked(
            input_ids: torch.Tensor, inputs_embeds: torch.Tensor | None = None, **kwargs: Any
        ) -> dict[str, Any]:
            # Where nothing is padded, `generate` drops the mask, and the Talker's forward then adds
            # no codec tokens that open the speech, and counts up through pictures: only a padded
            # batch would get both.
            inputs: dict[str, Any] = type(talker).prepare_inputs_for_generation(
                talker, input_ids, inputs_embeds=inputs_embeds, **kwargs
            )
            return inputs | {"attention_mask": torch.ones_like(input_ids)}

        def spoken(*arguments: Any, **named: Any) -> torch.Tensor:
            made = type(talker).generate(talker, *arguments, **named)
            codes.extend(made[0, named["input_ids"].shape[1] :].tolist())
            torch.manual_seed(seed)
            return made

        with (
            mock.patch.object(talker, "generate", spoken),
            mock.patch.object(talker, "prepare_inputs_for_generation", masked),
        ):
            tokens, waveform = self._model.generate(
                **inputs,
                speaker=voice,
                thinker_max_new_tokens=ANSWER_TOKENS,
                thinker_do_sample=False,
                thinker_eos_token_id=self._processor.tokenizer.eos_token_id,
                talker_do_sample=False,
                talker_max_new_tokens=MOST_CODES,
                talker_eos_token_id=[
                    talker.codec_pad_token,
                    self._model.config.talker_config.tts_codec_end_token_id,
                ],
            )
        return tokens[0, inputs["input_ids"].shape[1] :].tolist(), codes, waveform.numpy()


@pytest.fixture(scope="module")
def expected(reference: Qwen2_5OmniForConditionalGeneration, checkpoint: Path) -> Any:
    model = Expected(reference, checkpoint)
    return [
        model.answer(messages, index, ("Chelsie", "Ethan")[index % 2])
        for index, messages in enumerate(conversations())
    ]


def ask(name: str, index: int, messages: tuple[ChatMessage, ...]) -> OmniRequest:
    voice = ("Chelsie", "Ethan")[index % 2]
    return OmniRequest(
        name,
        TextInput(),
        SpeechParameters(voice=voice, seed=index, temperature=0.0),
        route="chat",
        chat=Chat(messages, max_tokens=ANSWER_TOKENS),
    )


def assert_equal(overheard: Overheard, name: str, chunks: list[Any], wanted: Any) -> None:
    tokens, codes, waveform = wanted
    assert [chunk.error for chunk in chunks if chunk.error is not None] == []
    assert overheard.tokens[name] == tokens
    # The reference gives its end token out, the engine only the one that is not its model's own.
    ours = overheard.codes[name]
    assert ours == codes[: len(ours)]
    assert len(codes) - len(ours) in (0, 1)
    samples = samples_of(chunks)
    assert samples.shape == waveform.shape
    assert np.abs(samples - waveform).max() < 1e-4 * np.abs(waveform).max()


@pytest.mark.parametrize("index", range(8))
async def test_alone_words_codes_and_sound_are_the_references(
    engine: AsyncOmniEngine, overheard: Overheard, expected: Any, index: int
) -> None:
    name = f"alone {index}"
    chunks = await collect(engine, ask(name, index, conversations()[index]))
    assert_equal(overheard, name, chunks, expected[index])


async def test_invariant_10_in_a_batch_that_others_join_and_leave_nothing_changes(
    engine: AsyncOmniEngine, overheard: Overheard, expected: Any
) -> None:
    said = conversations()

    async def late(index: int) -> list[Any]:
        await asyncio.sleep(0.03 * index)
        return await collect(engine, ask(f"batch {index}", index, said[index]))

    async def leaves(index: int) -> None:
        stream = engine.generate(ask(f"leaves {index}", index, said[index]))
        async with contextlib.aclosing(stream):
            await anext(stream)

    results = await asyncio.gather(*(late(i) for i in range(8)), *(leaves(i) for i in (1, 5)))
    for index in range(8):
        assert_equal(overheard, f"batch {index}", results[index] or [], expected[index])
    await assert_empty(engine)


async def test_the_examples_are_not_all_alike(expected: Any) -> None:
    """Some speech ends by itself and some at the limit; words and codes differ."""
    lengths = {len(codes) for _, codes, _ in expected}
    assert MOST_CODES in lengths
    assert min(lengths) < MOST_CODES
    assert len({tuple(codes) for _, codes, _ in expected}) == 8


async def test_text_alone_takes_no_talker(
    engine: AsyncOmniEngine, overheard: Overheard, expected: Any
) -> None:
    request = OmniRequest(
        "written",
        TextInput(),
        route="chat_text",
        chat=Chat(conversations()[2], max_tokens=ANSWER_TOKENS),
    )
    chunks = await collect(engine, request)
    assert any(isinstance(chunk.payload, TextPayload) for chunk in chunks)
    assert overheard.tokens["written"] == expected[2][0]
    assert "written" not in overheard.codes


async def test_a_text_is_spoken_as_the_thinkers_own_answer(
    engine: AsyncOmniEngine, overheard: Overheard
) -> None:
    request = OmniRequest(
        "spoken", TextInput.whole("Good morning."), SpeechParameters(seed=1, temperature=0.0)
    )
    chunks = await collect(engine, request)
    codes = [code for code in overheard.codes["spoken"] if code < 40]
    assert len(samples_of(chunks)) == 480 * len(codes) > 0
    await assert_empty(engine)


@pytest.mark.parametrize(("text", "reason"), [(" \n", "nothing"), ("a" * 100_001, "in parts")])
async def test_a_text_that_cannot_be_read_fails_at_once(
    engine: AsyncOmniEngine, text: str, reason: str
) -> None:
    source = TextInput()
    await source.write(text)
    source.close()
    chunks = await asyncio.wait_for(collect(engine, OmniRequest("odd", source)), 10)
    assert chunks[-1].error is not None
    assert reason in chunks[-1].error.message
    await assert_empty(engine)
