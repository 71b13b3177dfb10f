"""How codes are chosen: the right distribution, by request, repeatable and blind to the batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.code_choice import CodeChooser, CodeSampling, CodeStream, choose
from engine.step_sampling import StepSampling

CPU = torch.device("cpu")
WARM = CodeSampling(temperature=0.9, top_k=12, top_p=0.8)


def stream(sampling: CodeSampling = WARM, seed: int | None = 3) -> CodeStream:
    return CodeStream(sampling, seed, CPU)


def some_logits(requests: int, codes: int = 40, seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(requests, codes, generator=torch.Generator().manual_seed(seed))


def drawn(streams: list[CodeStream], logits: list[torch.Tensor]) -> np.ndarray:
    """Codes of one step, shape [requests, codebooks]."""
    choice = CodeChooser(len(logits), logits[0].shape[1], CPU).choice(streams)
    chosen = [choose(choice, values, index) for index, values in enumerate(logits)]
    return torch.stack(chosen, dim=1).numpy()


def expected_probabilities(sampling: CodeSampling, logits: torch.Tensor) -> np.ndarray:
    """By transformers' own warpers, in the order of its `generate`."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
    if sampling.top_k:
        warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        warpers.append(TopPLogitsWarper(sampling.top_p))
    return warpers(torch.zeros(1, 0, dtype=torch.long), logits).softmax(-1)[0].double().numpy()


@pytest.mark.parametrize(
    "sampling",
    [
        CodeSampling(1.0),
        CodeSampling(0.6),
        CodeSampling(0.9, top_k=7),
        CodeSampling(1.3, top_p=0.7),
        WARM,
    ],
    ids=str,
)
def test_codes_have_the_distribution_of_the_reference_warpers(sampling: CodeSampling) -> None:
    logits, requests, codebooks = some_logits(1), 2_000, 10
    expected = expected_probabilities(sampling, logits)
    streams = [stream(sampling, seed) for seed in range(requests)]
    codes = drawn(streams, [logits.expand(requests, -1)] * codebooks).ravel()
    count = len(codes)
    observed = np.bincount(codes, minlength=len(expected))
    assert observed[expected == 0].sum() == 0
    likely = expected * count >= 5
    seen = np.append(observed[likely], observed[~likely].sum())
    wanted = np.append(expected[likely], expected[~likely].sum()) * count
    if wanted[-1] == 0:
        seen, wanted = seen[:-1], wanted[:-1]
    assert chisquare(seen, wanted * count / wanted.sum()).pvalue > 1e-4


def test_a_request_has_the_same_codes_alone_and_in_a_batch() -> None:
    steps = [[some_logits(3, seed=10 * step + book) for book in range(4)] for step in range(6)]
    samplings = [WARM, CodeSampling(), CodeSampling(1.1)]
    together = [stream(sampling, seed) for seed, sampling in enumerate(samplings)]
    batch = np.stack([drawn(together, logits) for logits in steps])
    for index, sampling in enumerate(samplings):
        lone = stream(sampling, index)
        alone = np.stack([drawn([lone], [v[index : index + 1] for v in s])[0] for s in steps])
        assert np.array_equal(alone, batch[:, index])


def test_greedy_codes_are_the_most_probable_ones() -> None:
    logits = [some_logits(2, seed=book) for book in range(3)]
    codes = drawn([stream(CodeSampling()), stream(CodeSampling())], logits)
    assert np.array_equal(codes, torch.stack([v.argmax(-1) for v in logits], 1).numpy())
    assert CodeChooser(3, 40, CPU).choice([None, stream(CodeSampling())]) is None


def test_seeds_repeat_and_no_seed_does_not() -> None:
    logits = [some_logits(1, seed=book) for book in range(16)]
    assert np.array_equal(drawn([stream(seed=5)], logits), drawn([stream(seed=5)], logits))
    assert not np.array_equal(drawn([stream(seed=5)], logits), drawn([stream(seed=6)], logits))
    assert not np.array_equal(
        drawn([stream(seed=None)], logits), drawn([stream(seed=None)], logits)
    )


def test_a_request_that_does_not_take_part_draws_nothing() -> None:
    """One whose prompt is read in parts has the codes of one whose prompt is read whole."""
    logits = [some_logits(2, seed=book) for book in range(4)]
    parted, other = stream(seed=5), stream(seed=6)
    chooser = CodeChooser(4, 40, CPU)
    first = chooser.choice([None, other])
    assert first is not None
    greedy = choose(first, logits[0], 0)[0]
    assert greedy == logits[0][0].argmax()
    assert np.array_equal(
        drawn([parted], [v[:1] for v in logits]), drawn([stream(seed=5)], [v[:1] for v in logits])
    )


def test_filters_are_renewed_when_the_batch_changes() -> None:
    logits = some_logits(2)
    chooser = CodeChooser(1, 40, CPU)
    few, all_codes = CodeSampling(1.0, top_k=1), CodeSampling(1.0)
    for samplings in ([few, all_codes], [few, few], [all_codes, few]):
        choice = chooser.choice([stream(sampling) for sampling in samplings])
        wanted = drawn([stream(sampling) for sampling in samplings], [logits])[:, 0]
        assert choose(choice, logits, 0).tolist() == wanted.tolist()
        limited = [index for index, sampling in enumerate(samplings) if sampling is few]
        assert wanted[limited].tolist() == logits[limited].argmax(-1).tolist()


def test_a_step_asks_the_sampler_for_all_of_it() -> None:
    sampling = StepSampling(
        temperature=0.9,
        top_k=50,
        top_p=0.8,
        repetition_penalty=1.05,
        allowed_tokens=(1, 2),
        minimum_steps=2,
        maximum_steps=30,
        seed=7,
    )
    asked = sampling.vllm_parameters(100, end_token=2)
    assert (asked.temperature, asked.top_k, asked.top_p) == (0.9, 50, 0.8)
    assert (asked.repetition_penalty, asked.allowed_token_ids) == (1.05, [1, 2])
    assert (asked.min_tokens, asked.max_tokens, asked.seed) == (2, 30, 7)
    assert asked.stop_token_ids == [2]
    assert asked.all_stop_token_ids == {2}
    endless = sampling.vllm_parameters(20, end_token=None)
    assert (endless.max_tokens, endless.min_tokens, endless.stop_token_ids) == (20, 0, [])
