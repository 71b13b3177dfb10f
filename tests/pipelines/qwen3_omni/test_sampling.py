"""Thinker, Talker and code predictor draw from the distributions of the reference's `generate`."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import Chat, ChatMessage, SpeechParameters
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from engine.hidden_states import HiddenStatesPayload
from engine.step_sampling import CodeSampling, StepSampling
from engine.text_replica import TextReplica
from engine.text_request import TextPrompt
from pipelines.qwen3_omni.configuration import read_checkpoint
from pipelines.qwen3_omni.hearing import hearing_of
from pipelines.qwen3_omni.pipeline import build_talker, build_thinker
from pipelines.qwen3_omni.sampling import sampling_of
from tests.checkpoints.qwen3_omni import CODE_GROUPS
from tests.drawing import NOTHING, Draws, ForcedDraws, likelihood
from tests.pipelines.qwen3_omni.conversing import (
    ANSWER_TOKENS,
    Turn,
    reference_inputs,
    rows_of,
    run,
    states_of_the_reference,
)

Reference = Qwen3OmniMoeForConditionalGeneration

REQUESTS = 600
STEPS = 5
SPEAKER = "chelsie"
CHAT = Chat((ChatMessage("user", "Tell me of birds"),))
UNLIKELY, WRONG = 1e-3, 1e-9
"""Likelihoods; the seeds are set, so that each is the same in every run."""

USUAL = sampling_of(SpeechParameters())
OTHER = StepSampling(1.5, 14, 0.9, 2.5, codes=CodeSampling(0.6, 50, 0.8))


@pytest.fixture(scope="module")
def talker(checkpoint: Path) -> Generator[AutoregressiveReplica]:
    deployment = StageDeployment(
        max_requests=64, max_steps=256, key_value_cache_bytes=64 * 2**20, compile="never"
    )
    replica = build_talker(checkpoint, deployment)
    assert isinstance(replica, AutoregressiveReplica)
    yield replica
    replica.close()


@pytest.fixture(scope="module")
def rows(checkpoint: Path, reference: Reference) -> list[object]:
    hearing = hearing_of(checkpoint)
    inputs = reference_inputs(CHAT, hearing)
    eos = hearing.processor.tokenizer.eos_token_id
    payloads = states_of_the_reference(reference, inputs, eos)
    return rows_of(payloads, read_checkpoint(checkpoint), SPEAKER)


@pytest.fixture(scope="module")
def arguments(checkpoint: Path, reference: Reference) -> dict[str, Any]:
    """What the reference's own `generate` gives its Talker, for many requests at once."""
    hearing = hearing_of(checkpoint)
    with (
        mock.patch.object(reference.talker, "generate", side_effect=InterruptedError) as asked,
        pytest.raises(InterruptedError),
    ):
        reference.generate(
            **reference_inputs(CHAT, hearing),
            speaker=SPEAKER,
            thinker_max_new_tokens=ANSWER_TOKENS,
            thinker_do_sample=False,
            thinker_eos_token_id=hearing.processor.tokenizer.eos_token_id,
        )
    return {name: repeated(value) for name, value in asked.call_args.kwargs.items()}


def repeated(value: Any) -> Any:
    return value.repeat_interleave(REQUESTS, 0) if isinstance(value, torch.Tensor) else value


class Drawing:
    """Draws of our Talker, in the order in which the reference makes them.

    For each step that is the token and then the residual codes; those of the last step the
    reference never asks for.
    """

    def __init__(self, talker: AutoregressiveReplica, rows: list[object], end: int) -> None:
        self._talker, self._rows, self._end = talker, rows, end
        self._made: dict[StepSampling, list[Draws]] = {}

    def of(self, sampling: StepSampling) -> list[Draws]:
        if sampling not in self._made:
            limited = replace(sampling, maximum_steps=STEPS)
            usual, self._talker.sampling_of = (
                self._talker.sampling_of,
                lambda parameters: replace(limited, seed=parameters.seed),
            )
            turns = [
                Turn(str(seed), self._rows, parameters=SpeechParameters(seed=seed))
                for seed in range(REQUESTS)
            ]
            run(self._talker, turns)
            self._talker.sampling_of = usual
            self._made[sampling] = self._ordered(turns)
        return self._made[sampling]

    def _ordered(self, turns: list[Turn]) -> list[Draws]:
        codes = np.full((REQUESTS, STEPS, CODE_GROUPS), NOTHING)
        for row, turn in zip(codes, turns, strict=True):
            for step, output in enumerate(turn.outputs):
                row[step] = output.codes
            if len(turn.outputs) < STEPS:
                # The token that ends speech is no frame.
                row[len(turn.outputs), 0] = self._end
        places = codes.reshape(REQUESTS, -1).T
        return list(places[: -(CODE_GROUPS - 1)])


@pytest.fixture(scope="module")
def drawing(talker: AutoregressiveReplica, rows: list[object], reference: Reference) -> Drawing:
    return Drawing(talker, rows, reference.config.talker_config.codec_eos_token_id)


def by_the_reference(
    reference: Reference,
    arguments: dict[str, Any],
    draws: list[Draws],
    codes_temperature: float = 1.0,
    **changes: Any,
) -> ForcedDraws:
    """The reference's `generate` with our draws; its code predictor samples, as published."""
    forced = ForcedDraws(draws)
    predictor = reference.talker.code_predictor.generation_config
    with (
        mock.patch.object(torch, "multinomial", forced),
        mock.patch.multiple(predictor, do_sample=True, temperature=codes_temperature),
    ):
        reference.talker.generate(**arguments | {"max_new_tokens": STEPS} | changes)
    assert len(forced.probabilities) == len(draws)
    return forced


def asked_for(sampling: StepSampling) -> dict[str, Any]:
    return {
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "repetition_penalty": sampling.repetition_penalty,
        "codes_temperature": sampling.codes.temperature,
    }


def likelihoods(forced: ForcedDraws) -> tuple[float, float]:
    """Of the tokens and of the residual codes."""
    places = range(len(forced.draws))
    tokens = [place for place in places if place % CODE_GROUPS == 0]
    codes = [place for place in places if place % CODE_GROUPS != 0]
    return likelihood(forced.uniform(tokens, repeated=True)), likelihood(forced.uniform(codes))


def test_the_usual_sampling_is_the_references(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing
) -> None:
    """Nothing is named, so that the reference takes its own defaults."""
    forced = by_the_reference(reference, arguments, drawing.of(USUAL))
    assert min(likelihoods(forced)) > UNLIKELY
    defaults = inspect.signature(reference.generate).parameters
    assert USUAL.repetition_penalty == defaults["talker_repetition_penalty"].default
    assert USUAL.top_k == defaults["talker_top_k"].default


def test_any_other_sampling_is_the_references(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing
) -> None:
    forced = by_the_reference(reference, arguments, drawing.of(OTHER), **asked_for(OTHER))
    assert min(likelihoods(forced)) > UNLIKELY
    ended = sum((draws == NOTHING).any() for draws in forced.draws)
    assert ended > 0, "some requests should end by themselves"


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1.2},
        {"top_k": 20},
        {"top_k": 12},
        {"top_p": 0.8},
        {"repetition_penalty": 1.5},
        {"suppress_tokens": None},
        {"codes_temperature": 0.7},
    ],
    ids=str,
)
def test_a_difference_to_the_reference_is_noticed(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing, change: dict[str, Any]
) -> None:
    """The same draws against a reference that samples otherwise."""
    forced = by_the_reference(reference, arguments, drawing.of(OTHER), **asked_for(OTHER) | change)
    assert min(likelihoods(forced)) < WRONG


def test_a_thinker_asked_for_a_temperature_draws_as_the_reference(
    checkpoint: Path, reference: Reference
) -> None:
    """And with a nucleus, and a penalty for repetition, which counts the prompt's tokens too."""
    hearing = hearing_of(checkpoint)
    inputs = reference_inputs(CHAT, hearing)
    prompt = TextPrompt(
        tuple(inputs["input_ids"][0].tolist()),
        max_tokens=STEPS + 1,
        temperature=1.4,
        top_p=0.9,
        repetition_penalty=1.3,
        hidden_states=True,
    )
    deployment = StageDeployment(max_requests=64, max_steps=256, compile="never")
    thinker = build_thinker(checkpoint, deployment)
    assert isinstance(thinker, TextReplica)
    try:
        draws = thinker_draws(thinker, prompt, hearing.processor.tokenizer.eos_token_id)
    finally:
        thinker.close()
    asked: dict[str, Any] = {"temperature": 1.4, "top_p": 0.9, "repetition_penalty": 1.3}
    asked["eos_token_id"] = hearing.processor.tokenizer.eos_token_id
    assert thinker_likelihood(reference, inputs, draws, asked) > UNLIKELY
    for change in ({"temperature": 1.2}, {"top_p": 1.0}, {"repetition_penalty": 1.0}):
        assert thinker_likelihood(reference, inputs, draws, asked | change) < WRONG, change


def thinker_draws(thinker: TextReplica, prompt: TextPrompt, end: int) -> list[Draws]:
    turns = [
        Turn(str(seed), [prompt], parameters=SpeechParameters(seed=seed))
        for seed in range(REQUESTS)
    ]
    run(thinker, turns)
    tokens = np.full((REQUESTS, STEPS), NOTHING)
    for row, turn in zip(tokens, turns, strict=True):
        states = [output for output in turn.outputs if isinstance(output, HiddenStatesPayload)]
        ids = [token for payload in states for token in payload.token_ids]
        answer = ids[len(prompt.token_ids) :]
        row[: len(answer)] = answer
        if len(answer) < STEPS:
            row[len(answer)] = end
    return list(tokens.T)


def thinker_likelihood(
    reference: Reference,
    inputs: dict[str, torch.Tensor],
    draws: list[Draws],
    asked: dict[str, Any],
) -> float:
    forced = ForcedDraws(draws)
    with mock.patch.object(torch, "multinomial", forced):
        reference.thinker.generate(
            **{name: repeated(value) for name, value in inputs.items()},
            max_new_tokens=STEPS,
            do_sample=True,
            top_k=0,
            **asked,
        )
    return likelihood(forced.uniform(range(STEPS), repeated=True))
