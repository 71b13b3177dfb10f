"""Talker and code predictor draw from the distributions of the reference's `generate`."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import SpeechParameters
from engine.autoregressive import AutoregressiveReplica
from engine.step_sampling import CodeSampling, StepSampling
from pipelines.qwen3_tts.sampling import SamplingDefaults
from tests.checkpoints.qwen3_tts import SMALL, Variant
from tests.drawing import NOTHING, Draws, ForcedDraws, likelihood
from tests.pipelines.qwen3_tts.reference_process import ReferenceProcess
from tests.pipelines.qwen3_tts.speaking import Case, build, speak

REQUESTS = 400
STEPS = 5
END = SMALL.codes + 2
ASKED = SpeechParameters(voice="vivian", language="english")
TEXT = "Hi"
UNLIKELY, WRONG = 1e-3, 1e-9
"""Likelihoods; the seeds are set, so that each is the same in every run."""

OTHER = StepSampling(1.6, 14, 0.9, 2.5, minimum_steps=2, codes=CodeSampling(0.7, 12, 0.85))


class Drawing:
    """Draws of our Talker, in the order in which the reference makes them."""

    def __init__(self, folder: Path, talker: AutoregressiveReplica) -> None:
        self._folder, self._talker = folder, talker
        self._made: dict[StepSampling, list[Draws]] = {}

    def of(self, sampling: StepSampling) -> list[Draws]:
        if sampling not in self._made:
            limited = replace(sampling, maximum_steps=STEPS)
            self._talker.sampling_of = lambda asked: replace(limited, seed=asked.seed)
            cases = [Case(TEXT, replace(ASKED, seed=seed)) for seed in range(REQUESTS)]
            made = np.full((REQUESTS, STEPS, SMALL.codebooks), NOTHING)
            for row, codes in zip(made, speak(self._folder, self._talker, cases), strict=True):
                row[: len(codes)] = codes
                if len(codes) < STEPS:
                    # The token that ends speech is no frame.
                    row[len(codes), 0] = END
            # The residual codes of the last step are never asked for by the reference.
            self._made[sampling] = list(made.reshape(REQUESTS, -1).T[: 1 - SMALL.codebooks])
        return self._made[sampling]


@pytest.fixture(scope="module")
def folder(checkpoints: dict[Variant, Path]) -> Path:
    return checkpoints[Variant.CUSTOM_VOICE]


@pytest.fixture(scope="module")
def drawing(folder: Path) -> Generator[Drawing]:
    talker = build(folder, max_requests=64)
    yield Drawing(folder, talker)
    talker.close()


def likelihoods(forced: ForcedDraws) -> tuple[float, float]:
    """Of the tokens and of the residual codes."""
    places = range(len(forced.draws))
    tokens = [place for place in places if place % SMALL.codebooks == 0]
    codes = [place for place in places if place % SMALL.codebooks != 0]
    return likelihood(forced.uniform(tokens, repeated=True)), likelihood(forced.uniform(codes))


def by_the_reference(
    reference: ReferenceProcess, folder: Path, draws: list[Draws], **sampling: Any
) -> ForcedDraws:
    spoken = {"language": ASKED.language, "speaker": ASKED.voice}
    forced = reference.drawn_from(folder, TEXT, draws, **spoken, **sampling)
    assert len(forced.probabilities) == len(draws)
    return forced


ASKED_FOR = {
    "temperature": OTHER.temperature,
    "top_k": OTHER.top_k,
    "top_p": OTHER.top_p,
    "repetition_penalty": OTHER.repetition_penalty,
    "subtalker_temperature": OTHER.codes.temperature,
    "subtalker_top_k": OTHER.codes.top_k,
    "subtalker_top_p": OTHER.codes.top_p,
}


def test_the_usual_sampling_is_the_references(
    reference: ReferenceProcess, folder: Path, drawing: Drawing
) -> None:
    """Nothing is named, so that the reference takes its own defaults."""
    usual = SamplingDefaults.of(folder).of_request(ASKED)
    forced = by_the_reference(reference, folder, drawing.of(usual))
    assert min(likelihoods(forced)) > UNLIKELY


def test_any_other_sampling_is_the_references(
    reference: ReferenceProcess, folder: Path, drawing: Drawing
) -> None:
    """Tokens are suppressed too: those that are no codes, and the end in the first steps."""
    forced = by_the_reference(reference, folder, drawing.of(OTHER), **ASKED_FOR)
    assert min(likelihoods(forced)) > UNLIKELY
    assert any((draws == NOTHING).any() for draws in forced.draws), "some should end early"
    assert not any((draws == END).any() for draws in forced.draws[: SMALL.codebooks + 1])


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1.3},
        {"top_k": 20},
        {"top_k": 12},
        {"top_p": 0.8},
        {"repetition_penalty": 1.5},
        {"subtalker_temperature": 0.9},
        {"subtalker_top_k": 16},
        {"subtalker_top_p": 0.95},
    ],
    ids=str,
)
def test_a_difference_to_the_reference_is_noticed(
    reference: ReferenceProcess, folder: Path, drawing: Drawing, change: dict[str, Any]
) -> None:
    """The same draws against a reference that samples otherwise."""
    forced = by_the_reference(reference, folder, drawing.of(OTHER), **ASKED_FOR | change)
    assert min(likelihoods(forced)) < WRONG
