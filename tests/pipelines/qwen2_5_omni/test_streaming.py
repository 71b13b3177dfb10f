"""The pipeline with its own deployment, which streams."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import numpy as np
import pytest

from engine import AudioPayload, Chat, ChatMessage, OmniRequest, SpeechParameters, TextInput
from engine.deploy_config import load_deploy_config
from engine.diffusion_module import DiffusionInput
from engine.generation import GenerationInput
from pipelines.qwen2_5_omni.pipeline import PIPELINE, build_denoiser, build_vocoder
from tests.checkpoints.qwen2_5_omni import LAST_CODE
from tests.pipelines.qwen2_5_omni.overhearing import MOST_CODES, Overheard, running, samples_of
from tests.toys import assert_empty, collect


def asked(name: str, text: str, seed: int) -> OmniRequest:
    return OmniRequest(
        name,
        TextInput(),
        SpeechParameters(seed=seed),
        route="chat",
        chat=Chat((ChatMessage("user", text),), max_tokens=12, temperature=1.0),
    )


def decoded(checkpoint: Path, codes: list[int], seed: int) -> np.ndarray:
    """Codes that are all there at once, by stages of the same deployment."""
    stages = load_deploy_config(PIPELINE.deploy, [stage.name for stage in PIPELINE.stages]).stages
    denoiser = build_denoiser(checkpoint, stages["denoiser"])
    denoiser.add("a", SpeechParameters(seed=seed))
    denoiser.offer("a", DiffusionInput(len(codes), np.array(codes)))
    denoiser.close_input("a")
    vocoder = build_vocoder(checkpoint, stages["vocoder"])
    vocoder.add("a", SpeechParameters())
    while denoiser.ready({}):
        for made in denoiser.step({}):
            frames = made.output.frames
            vocoder.offer("a", GenerationInput(len(frames), frames))
    vocoder.close_input("a")
    parts = []
    while vocoder.ready({}):
        parts += [made.output.samples for made in vocoder.step({}) if made.output is not None]
    return np.concatenate(parts)


@pytest.mark.asyncio
async def test_invariant_09_streamed_sound_is_that_of_its_codes_at_once(
    overheard: Overheard, checkpoint: Path, tmp_path: Path
) -> None:
    """In company, with a seed that repeats words, codes and noise; and those who leave are gone."""
    async with running(checkpoint, tmp_path) as engine:

        async def leaves(index: int) -> None:
            async with contextlib.aclosing(
                engine.generate(asked(f"left {index}", "Hm", index))
            ) as s:
                async for chunk in s:
                    if isinstance(chunk.payload, AudioPayload):
                        break

        said = ["Tell me of birds.", "hi", "and now?", "1 2 3"]
        spoken = await asyncio.gather(
            *(collect(engine, asked(f"{i}", text, i)) for i, text in enumerate(said)),
            *(leaves(index) for index in (5, 6)),
        )
        again = await collect(engine, asked("again", said[0], 0))
        await assert_empty(engine)
    lengths = set()
    for index in range(len(said)):
        chunks = spoken[index] or []
        assert [chunk.error for chunk in chunks if chunk.error is not None] == []
        codes = [code for code in overheard.codes[str(index)] if code <= LAST_CODE]
        wanted = decoded(checkpoint, codes, index)
        samples = samples_of(chunks)
        assert samples.shape == wanted.shape == (480 * len(codes),)
        assert np.abs(samples - wanted).max() < 1e-4 * np.abs(wanted).max()
        lengths.add((len(codes), sum(isinstance(c.payload, AudioPayload) for c in chunks)))
    assert max(lengths)[0] == MOST_CODES, lengths
    assert max(lengths)[1] > 1
    assert overheard.tokens["again"] == overheard.tokens["0"]
    assert overheard.codes["again"] == overheard.codes["0"]
    assert np.array_equal(samples_of(again), samples_of(spoken[0] or []))
