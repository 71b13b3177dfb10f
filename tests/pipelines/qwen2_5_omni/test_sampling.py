"""Thinker and Talker draw from the distributions of the reference's `generate`."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from transformers import AutoProcessor, Qwen2_5OmniForConditionalGeneration

from engine import SpeechParameters
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from engine.hidden_states import HiddenStatesPayload
from engine.stage import Replica
from engine.step_sampling import StepSampling
from engine.text_request import TextPrompt
from pipelines.qwen2_5_omni.adapters import StatesToRows
from pipelines.qwen2_5_omni.pipeline import PIPELINE
from pipelines.qwen2_5_omni.sampling import sampling_of
from pipelines.qwen2_5_omni.talker_tokens import tokens_of
from tests.checkpoints.qwen2_5_omni import CODEC_BEGIN, CODEC_END, CODEC_MASK, CODEC_PAD
from tests.drawing import NOTHING, Draws, ForcedDraws, likelihood

Reference = Qwen2_5OmniForConditionalGeneration

REQUESTS = 600
STEPS = 5
VOICE = "Chelsie"
TOKENS = 8
VOCABULARY = 48
UNLIKELY, WRONG = 1e-3, 1e-9
"""Likelihoods; the seeds are set, so that each is the same in every run."""

USUAL = sampling_of(CODEC_PAD)(SpeechParameters())
OTHER = replace(USUAL, temperature=1.5, top_k=14, top_p=0.9, repetition_penalty=2.5)
OPEN = replace(USUAL, temperature=1.5, top_k=0, top_p=1.0)
SUPPRESSED = [CODEC_BEGIN, *range(CODEC_MASK, VOCABULARY)]
"""What the reference suppresses, and what it would fail on: there is no sound for it."""

DEPLOYMENT = StageDeployment(
    max_requests=64, max_steps=256, key_value_cache_bytes=64 * 2**20, compile="never"
)


def built(checkpoint: Path, name: str) -> Replica:
    """A replica of a stage."""
    (stage,) = [stage for stage in PIPELINE.stages if stage.name == name]
    return stage.build(checkpoint, DEPLOYMENT)


def inputs_of(checkpoint: Path) -> dict[str, torch.Tensor]:
    processor = AutoProcessor.from_pretrained(checkpoint)
    text = "<|im_start|>user\nTell me of birds.<|im_end|>\n<|im_start|>assistant\n"
    return dict(processor(text=text, return_tensors="pt"))


def end_of(checkpoint: Path) -> int:
    """The Thinker's end token."""
    return int(AutoProcessor.from_pretrained(checkpoint).tokenizer.eos_token_id)


def repeated(value: Any) -> Any:
    return value.repeat_interleave(REQUESTS, 0) if isinstance(value, torch.Tensor) else value


def outputs_of(replica: Replica, payloads: list[Any], seeds: Iterable[int]) -> list[list[Any]]:
    """What a replica makes of the same input with each seed."""
    outputs: dict[str, list[Any]] = {str(seed): [] for seed in seeds}
    for name in outputs:
        replica.add(name, SpeechParameters(seed=int(name)))
        for payload in payloads:
            replica.offer(name, payload)
        replica.close_input(name)
    left = set(outputs)
    while left:
        for made in replica.step({}):
            if made.output is not None:
                outputs[made.request_id].append(made.output)
            if made.finished:
                left.remove(made.request_id)
    return list(outputs.values())


@pytest.fixture(scope="module")
def rows(checkpoint: Path, reference: Reference) -> list[Any]:
    """The Talker's rows, from what the reference's Thinker gives."""
    inputs = inputs_of(checkpoint)
    result = reference.thinker.generate(
        **inputs,
        max_new_tokens=TOKENS,
        do_sample=False,
        eos_token_id=end_of(checkpoint),
        output_hidden_states=True,
        return_dict_in_generate=True,
    )
    adapter = StatesToRows(tokens_of(checkpoint, VOICE))
    start, prompt = 0, inputs["input_ids"].shape[1]
    for step in result.hidden_states:
        stop = start + step[0].shape[1]
        ids = tuple(result.sequences[0, start:stop].tolist())
        adapter.push(HiddenStatesPayload(start, ids, prompt, step[0][0], step[-1][0]))
        start = stop
    adapter.close()
    made = []
    while not adapter.finished:
        made.append(adapter.pull())
    return made


@pytest.fixture(scope="module")
def arguments(checkpoint: Path, reference: Reference) -> dict[str, Any]:
    """What the reference's own `generate` gives its Talker, for many requests at once."""
    talker = reference.talker
    with (
        mock.patch.object(talker, "generate", side_effect=InterruptedError) as asked,
        pytest.raises(InterruptedError),
    ):
        reference.generate(
            **inputs_of(checkpoint),
            speaker=VOICE,
            thinker_max_new_tokens=TOKENS,
            thinker_do_sample=False,
            thinker_eos_token_id=end_of(checkpoint),
            talker_eos_token_id=[CODEC_PAD, CODEC_END],
        )
    named = dict(asked.call_args.kwargs)
    # Where nothing is padded, `generate` does not add the codec tokens that open the speech.
    opening = talker.get_input_embeddings()(torch.tensor([CODEC_PAD, CODEC_BEGIN]))
    named["inputs_embeds"][:, -2:] += opening.detach()
    return {name: repeated(value) for name, value in named.items()}


class Drawing:
    """Draws of our Talker, step by step."""

    def __init__(self, talker: AutoregressiveReplica, rows: list[Any]) -> None:
        self._talker, self._rows = talker, rows
        self._made: dict[StepSampling, list[Draws]] = {}

    def of(self, sampling: StepSampling) -> list[Draws]:
        if sampling not in self._made:
            limited = replace(sampling, maximum_steps=STEPS)
            self._talker.sampling_of = lambda asked: replace(limited, seed=asked.seed)
            outputs = outputs_of(self._talker, self._rows, range(REQUESTS))
            self._made[sampling] = [
                np.array(step) for step in zip(*map(_drawn, outputs), strict=True)
            ]
        return self._made[sampling]


def _drawn(outputs: list[Any]) -> list[int]:
    """A request's draws; the end token is not given out, and padding, which ends it too, is."""
    codes = [int(output.codes[0]) for output in outputs]
    if len(codes) < STEPS and (not codes or codes[-1] != CODEC_PAD):
        codes.append(CODEC_END)
    return codes + [NOTHING] * (STEPS - len(codes))


@pytest.fixture(scope="module")
def drawing(checkpoint: Path, rows: list[Any]) -> Generator[Drawing]:
    talker = built(checkpoint, "talker")
    assert isinstance(talker, AutoregressiveReplica)
    yield Drawing(talker, rows)
    talker.close()


def by_the_reference(
    reference: Reference, arguments: dict[str, Any], draws: list[Draws], **changes: Any
) -> ForcedDraws:
    """The reference's `generate` with our draws."""
    forced = ForcedDraws(draws)
    limits = {"max_new_tokens": STEPS, "suppress_tokens": SUPPRESSED}
    with mock.patch.object(torch, "multinomial", forced):
        reference.talker.generate(**arguments | limits | changes)
    assert len(forced.probabilities) == len(draws)
    return forced


def asked_for(sampling: StepSampling) -> dict[str, Any]:
    return {
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "repetition_penalty": sampling.repetition_penalty,
    }


def test_the_usual_sampling_is_the_references(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing
) -> None:
    """Nothing is named, so that the reference takes its own defaults."""
    forced = by_the_reference(reference, arguments, drawing.of(USUAL))
    assert likelihood(forced.uniform(range(STEPS), repeated=True)) > UNLIKELY
    defaults = inspect.signature(reference.generate).parameters
    for name, value in asked_for(USUAL).items():
        assert value == defaults[f"talker_{name}"].default


def test_any_other_sampling_is_the_references(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing
) -> None:
    forced = by_the_reference(reference, arguments, drawing.of(OTHER), **asked_for(OTHER))
    assert likelihood(forced.uniform(range(STEPS), repeated=True)) > UNLIKELY
    assert any((draws == NOTHING).any() for draws in forced.draws), "some should end early"


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1.2},
        {"top_k": 20},
        {"top_k": 12},
        {"top_p": 0.8},
        {"repetition_penalty": 1.5},
    ],
    ids=str,
)
def test_a_difference_to_the_reference_is_noticed(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing, change: dict[str, Any]
) -> None:
    """The same draws against a reference that samples otherwise."""
    changes = asked_for(OTHER) | change
    forced = by_the_reference(reference, arguments, drawing.of(OTHER), **changes)
    assert likelihood(forced.uniform(range(STEPS), repeated=True)) < WRONG


def test_what_becomes_no_sound_is_never_drawn(
    reference: Reference, arguments: dict[str, Any], drawing: Drawing
) -> None:
    """Nothing but suppression keeps tokens away here."""
    asked = asked_for(OPEN)
    forced = by_the_reference(reference, arguments, drawing.of(OPEN), **asked)
    assert likelihood(forced.uniform(range(STEPS), repeated=True)) > UNLIKELY
    asked["suppress_tokens"] = None
    forced = by_the_reference(reference, arguments, drawing.of(OPEN), **asked)
    assert likelihood(forced.uniform(range(STEPS), repeated=True)) < WRONG


def test_a_thinker_asked_for_a_temperature_draws_as_the_reference(
    checkpoint: Path, reference: Reference
) -> None:
    inputs = inputs_of(checkpoint)
    end = end_of(checkpoint)
    ids = tuple(inputs["input_ids"][0].tolist())
    prompt = TextPrompt(ids, max_tokens=STEPS + 1, temperature=1.4, top_p=0.9, hidden_states=True)
    thinker = built(checkpoint, "thinker")
    try:
        outputs = outputs_of(thinker, [prompt], range(REQUESTS))
    finally:
        thinker.close()
    answers = []
    for made in outputs:
        states = [output for output in made if isinstance(output, HiddenStatesPayload)]
        tokens = [token for payload in states for token in payload.token_ids][len(ids) :]
        if len(tokens) < STEPS:
            tokens.append(end)
        answers.append(tokens + [NOTHING] * (STEPS - len(tokens)))
    draws = [np.array(step) for step in zip(*answers, strict=True)]

    def by_thinker(**changes: Any) -> float:
        forced = ForcedDraws(draws)
        asked: dict[str, Any] = {"temperature": 1.4, "top_p": 0.9, "top_k": 0}
        with mock.patch.object(torch, "multinomial", forced):
            reference.thinker.generate(
                **{name: repeated(value) for name, value in inputs.items()},
                max_new_tokens=STEPS,
                do_sample=True,
                eos_token_id=end,
                **asked | changes,
            )
        return likelihood(forced.uniform(range(STEPS), repeated=True))

    assert by_thinker() > UNLIKELY
    for change in ({"temperature": 1.2}, {"top_p": 1.0}, {"repetition_penalty": 1.5}):
        assert by_thinker(**change) < WRONG, change
