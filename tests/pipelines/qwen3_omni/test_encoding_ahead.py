"""Sounds are encoded window by window, early or late, and nobody can tell which."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import AudioContent, Chat, ChatMessage, OmniRequest, TextInput, TextPayload
from engine.encoder_cache import encoded_items
from engine.engine import AsyncOmniEngine
from engine.text_replica import TextReplica
from pipelines.qwen.hearing import Hearing
from pipelines.qwen.prompts import ChatToPrompt
from tests.pipelines.qwen3_omni.conversing import Turn, run, sound
from tests.pipelines.qwen3_omni.test_pipeline import running
from tests.pipelines.qwen3_omni.test_thinker import states_of
from tests.toys import assert_empty

WINDOW = 8 * 16_000
"""Samples."""


def turn_of(name: str, hearing: Hearing, *sounds: AudioContent) -> Turn:
    adapter = ChatToPrompt(hearing, speaks=True)
    adapter.push(Chat((ChatMessage("user", "", sounds=sounds),), max_tokens=8, temperature=0.0))
    return Turn(name, [adapter.pull()])


def heard_in(turn: Turn, hearing: Hearing) -> torch.Tensor:
    """What stood in the prompt for the sounds."""
    tokens, embeddings, _ = states_of(turn)
    tokenizer = hearing.processor.tokenizer
    placeholder = tokenizer.convert_tokens_to_ids(hearing.processor.audio_token)
    return embeddings[torch.tensor(tokens) == placeholder]


def falling(seconds: float, seed: int) -> AudioContent:
    """A sound that is loudest in its first second."""
    samples = sound(seconds, seed).samples.copy()
    samples[:16_000] *= 2.0
    return AudioContent(samples)


def rising(seconds: float, loudest: float) -> AudioContent:
    """Noise with something louder at a time in seconds, and one second of silence.

    The features are cut off at 80 dB below the loudest moment; that concerns the silence only.
    """
    samples = np.random.default_rng(3).normal(0.0, 0.1, int(16_000 * seconds))
    at = int(16_000 * loudest)
    samples[at : at + 800] *= 4.0
    samples[16_000:32_000] = 0.0
    return AudioContent(samples.astype(np.float32))


@pytest.mark.parametrize("seconds", [0.43, 8.0, 8.005, 8.431, 17.2, 24.99])
def test_windows_are_encoded_as_in_the_sound_at_once(
    thinker: TextReplica,
    hearing: Hearing,
    reference: Qwen3OmniMoeForConditionalGeneration,
    seconds: float,
) -> None:
    said = sound(seconds, 4)
    turn = turn_of("late", hearing, said)
    run(thinker, [turn])
    features = hearing.features(said.samples)
    with torch.inference_mode():
        expected = reference.thinker.get_audio_features(
            features[None], feature_attention_mask=torch.ones(1, features.shape[1]).long()
        ).last_hidden_state
    torch.testing.assert_close(heard_in(turn, hearing), expected, rtol=1e-4, atol=1e-4)


def test_what_was_encoded_early_is_used_and_is_the_same(
    thinker: TextReplica, hearing: Hearing
) -> None:
    said = falling(20.3, 6)
    late = turn_of("late", hearing, said)
    run(thinker, [late])
    tokens = states_of(late)[0]
    thinker.core.reset_encoder_cache()
    early = hearing.beginning(AudioContent(said.samples[: 2 * WINDOW + 400]))
    assert len(early) == 2
    assert [thinker.encode(item) for item in early] == [True, True]
    assert [thinker.encode(item) for item in early] == [False, False], "they are known now"
    assert encoded_items(thinker.core) == 2
    encoded: list[int] = []
    tower = thinker.core.model_executor.driver_worker.model_runner.model.audio_tower
    hook = tower.register_forward_pre_hook(
        lambda _, __, inputs: encoded.append(int(inputs["feature_lens"].sum())), with_kwargs=True
    )
    turn = turn_of("early", hearing, said)
    try:
        run(thinker, [turn])
    finally:
        hook.remove()
    assert encoded == [430], "only the rest is encoded when the turn has ended"
    assert states_of(turn)[0] == tokens
    difference = (heard_in(turn, hearing) - heard_in(late, hearing)).abs().max()
    assert float(difference) < 1e-5


def test_features_of_a_beginning_are_those_of_the_whole_bit_by_bit(hearing: Hearing) -> None:
    said = falling(25.0, 2)
    whole = hearing.hear(said)
    early = hearing.beginning(AudioContent(said.samples[: 3 * WINDOW + 200]))
    assert len(early) == 3
    for one, other in zip(early, whole, strict=False):
        ours, theirs = (item.data["input_audio_features"].data for item in (one, other))
        assert torch.equal(ours, theirs)
        assert one.identifier == other.identifier


def test_a_frame_that_may_still_change_is_waited_for(hearing: Hearing) -> None:
    said = sound(9.0, 2).samples
    known = WINDOW - 160 + 200
    assert hearing.beginning(AudioContent(said[: known - 1])) == ()
    assert len(hearing.beginning(AudioContent(said[:known]))) == 1
    assert hearing.beginning(AudioContent(said[:100])) == ()


def test_a_louder_moment_changes_only_the_windows_that_were_cut_off_by_it(hearing: Hearing) -> None:
    said = rising(26.0, loudest=25.0)
    early = hearing.beginning(AudioContent(said.samples[: 3 * WINDOW + 400]))
    whole = hearing.hear(said)
    same = [one.identifier == other.identifier for one, other in zip(early, whole, strict=False)]
    assert same == [False, True, True]


def test_a_short_end_is_not_taken_for_a_short_sound(hearing: Hearing) -> None:
    """They are encoded in different ways, so they have different names."""
    said = sound(8.5, 2)
    end = hearing.hear(said)[1]
    features = end.data["input_audio_features"].data
    alone = hearing._window(features, continues=False)
    assert alone.identifier != end.identifier


@pytest.mark.asyncio
async def test_an_engine_hears_ahead_between_steps_and_leaves_nothing(
    checkpoint: Path, tmp_path: Path
) -> None:
    """Ten sounds at once, half of them dropped; then one is answered, early and late alike."""
    said = [sound(17.3, seed) for seed in range(10)]
    async with running(checkpoint, tmp_path) as engine:
        late = await written(engine, "late", said[0])
        answering = asyncio.create_task(written(engine, "meanwhile", sound(1.5, 30)))
        hearing = [asyncio.create_task(engine.hear(one)) for one in said]
        await asyncio.sleep(0.05)
        for task in hearing[5:]:
            task.cancel()
        await asyncio.gather(*hearing[:5])
        results = await asyncio.gather(*hearing, return_exceptions=True)
        assert all(result is None for result in results[:5])
        assert await answering
        assert await written(engine, "early", said[0]) == late
        assert engine.registry.get_sample_value("antiphon_encodings_waiting") == 0
        await assert_empty(engine)
        await engine.hear(AudioContent(np.zeros(100, np.float32)))


async def written(engine: AsyncOmniEngine, name: str, content: AudioContent) -> str:
    """The greedy answer to a sound, in words."""
    chat = Chat((ChatMessage("user", "", sounds=(content,)),), max_tokens=8, temperature=0.0)
    request = OmniRequest(name, TextInput(), route="chat_text", chat=chat)
    text = ""
    async with aclosing(engine.generate(request)) as chunks:
        async for chunk in chunks:
            assert chunk.error is None, chunk.error
            if isinstance(chunk.payload, TextPayload):
                text += chunk.payload.text
    return text
