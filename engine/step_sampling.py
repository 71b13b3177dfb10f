"""How the tokens and codes of a conditioned autoregressive stage are chosen, request by request.

The first codebook (the token) is sampled by vLLM's sampler. The other codebooks are completed by
the model's code predictor inside the step, and chosen here. Every request has a generator of its
own, keyed by request and never by place in the batch: its codes are the same alone and in a
batch, and a seed repeats them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind

from engine.device import to_device
from engine.request import LARGEST_SEED, SpeechParameters

CODES_STREAM = 0x5851F42D4C957F2D
"""Sets the generator of a request's codes apart from that of its tokens, which has its seed."""


@dataclass(frozen=True, slots=True)
class CodeSampling:
    """How the code predictor's codes are chosen.

    Attributes:
        temperature: 0 for the most probable code.
        top_k: How many codes may be chosen from; 0 for all.
        top_p: Nucleus size; 1 for all.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class StepSampling:
    """How a request's tokens are chosen.

    Attributes:
        temperature: 0 for greedy.
        top_k: How many tokens may be chosen from; 0 for all.
        top_p: Nucleus size; 1 for all.
        repetition_penalty: Divides positive logits of tokens that were sampled before, multiplies
            negative ones (CTRL, arXiv:1909.05858); 1 for none. vLLM counts the prompt's tokens
            too, all of which are the model's `begin_token`.
        allowed_tokens: The only tokens that may be sampled; None for all. What a model may never
            sample is better masked in its `compute_logits`.
        minimum_steps: The model's end token cannot be sampled in so many first steps.
        other_end_tokens: Tokens that end a request beside the model's end token; unlike that one,
            such a token is given out as the last step.
        maximum_steps: Ends the request after so many steps; None leaves it to the deployment.
        seed: Makes tokens and codes repeatable; None draws one.
        codes: How the code predictor's codes are chosen.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    allowed_tokens: tuple[int, ...] | None = None
    minimum_steps: int = 0
    other_end_tokens: tuple[int, ...] = ()
    maximum_steps: int | None = None
    seed: int | None = None
    codes: CodeSampling = CodeSampling()

    def vllm_parameters(self, most_steps: int, end_token: int | None) -> SamplingParams:
        """The same for vLLM's sampler.

        Args:
            most_steps: How many steps there is room for.
            end_token: The token that ends a request, if the model has one.
        """
        most = min(most_steps, self.maximum_steps or most_steps)
        ends = self.other_end_tokens if end_token is None else (end_token, *self.other_end_tokens)
        return SamplingParams(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            repetition_penalty=self.repetition_penalty,
            allowed_token_ids=None if self.allowed_tokens is None else list(self.allowed_tokens),
            min_tokens=min(self.minimum_steps, most) if ends else 0,
            stop_token_ids=list(ends) or None,
            seed=self.seed,
            max_tokens=most,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )


SamplingOf = Callable[[SpeechParameters], StepSampling]
"""A pipeline's choice of sampling for a request."""


def plain_sampling(parameters: SpeechParameters) -> StepSampling:
    """Greedy, or warm as the request asks; the codes are the most probable ones."""
    return StepSampling(temperature=parameters.temperature or 0.0, seed=parameters.seed)


class CodeStream:
    """One request's way of choosing codes, with its generator; lives as long as the request."""

    __slots__ = ("generator", "sampling")

    def __init__(self, sampling: CodeSampling, seed: int | None, device: torch.device) -> None:
        """Begins the request's stream of random numbers.

        Args:
            sampling: How to choose.
            seed: The request's seed; None draws one.
            device: Where the logits are.
        """
        self.sampling = sampling
        self.generator: torch.Generator | None = None
        if sampling.temperature > 0:
            self.generator = torch.Generator(device)
            drawn = random.getrandbits(63) if seed is None else seed ^ CODES_STREAM
            self.generator.manual_seed(drawn % LARGEST_SEED)


@dataclass(frozen=True, slots=True)
class CodeFilters:
    """The requests' ways of choosing as tensors, made once a step; greedy rows do not matter.

    Attributes:
        most: How many of the most probable codes some request chooses from.
        warm: Which requests sample, shape [requests, 1]; None: all.
        heat: Temperatures, shape [requests, 1].
        top_k: int64, shape [requests, 1]; None: `most` for all.
        top_p: Shape [requests, 1]; None: no request limits that.
    """

    most: int
    warm: torch.Tensor | None
    heat: torch.Tensor
    top_k: torch.Tensor | None
    top_p: torch.Tensor | None

    @classmethod
    def of(cls, samplings: Sequence[CodeSampling], codes: int, device: torch.device) -> CodeFilters:
        """For codebooks of that many codes."""
        warm = [sampling.temperature > 0 for sampling in samplings]
        heat = [s.temperature if s.temperature > 0 else 1.0 for s in samplings]
        top_k = [candidates(sampling, codes) for sampling in samplings]
        top_p = [sampling.top_p for sampling in samplings]

        def column(values: list[Any]) -> torch.Tensor:
            return to_device(torch.tensor(values), device)[:, None]

        return cls(
            max(top_k),
            None if all(warm) else column(warm),
            column(heat),
            column(top_k) if min(top_k) < max(top_k) else None,
            column(top_p) if min(top_p) < 1.0 else None,
        )

    def choose(self, logits: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Codes after temperature, top-k and top-p, in this order, as transformers' warpers do.

        The largest ratio of a probability to exponential noise stands at each code with just that
        probability, so that nothing has to be read back from the device.

        Args:
            logits: Shape [requests, codes].
            noise: By rank of the codes, shape [requests, at least `most`].
        """
        values, places = logits.topk(self.most)
        scaled = values.float() / self.heat
        if self.top_k is not None:
            ranks = torch.arange(self.most, device=logits.device)
            scaled = scaled.masked_fill(ranks >= self.top_k, -torch.inf)
        probabilities = scaled.softmax(dim=-1)
        if self.top_p is not None:
            likelier = probabilities.cumsum(dim=-1) - probabilities
            probabilities = probabilities.masked_fill(likelier >= self.top_p, 0.0)
        rank = (probabilities / noise[:, : self.most]).argmax(dim=-1, keepdim=True)
        if self.warm is not None:
            rank = rank * self.warm
        return places.gather(1, rank).squeeze(1)


def candidates(sampling: CodeSampling, codes: int) -> int:
    """How many of so many codes a request chooses from."""
    if sampling.temperature <= 0:
        return 1
    return min(sampling.top_k, codes) if sampling.top_k > 0 else codes


@dataclass(slots=True)
class CodeChooser:
    """Chooses one code after the other for the requests of one step.

    Calling it with the logits of the next codebook, shape [requests, codes] in the order of
    `streams`, gives the chosen codes, int64, shape [requests].

    Attributes:
        streams: The requests' streams; None where a request has none (a dummy run): greedy.
        codebooks: How many codebooks will be chosen; the noise of all is drawn at once.
    """

    streams: Sequence[CodeStream | None]
    codebooks: int
    _noise: torch.Tensor | None = None
    _filters: CodeFilters | None = None
    _codes: int = 0
    _used: int = 0
    _warm: bool = field(init=False)

    def __post_init__(self) -> None:
        self._warm = any(s is not None and s.generator is not None for s in self.streams)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Chooses the codes of the next codebook."""
        if not self._warm:
            return logits.argmax(dim=-1)
        noise, filters = self._next(logits)
        return filters.choose(logits, noise)

    def _next(self, logits: torch.Tensor) -> tuple[torch.Tensor, CodeFilters]:
        """Exponential noise for a codebook, shape [requests, candidates], and the filters."""
        codes = logits.shape[-1]
        noise, filters = self._noise, self._filters
        renewed = codes != self._codes or self._used == self.codebooks
        if noise is None or filters is None or renewed:
            noise, filters = self._draw(codes, logits.device)
            self._noise, self._filters, self._codes, self._used = noise, filters, codes, 0
        self._used += 1
        return noise[:, self._used - 1], filters

    def _draw(self, codes: int, device: torch.device) -> tuple[torch.Tensor, CodeFilters]:
        """Each request draws as much noise as it has candidates, whoever else is there."""
        samplings = [s.sampling if s is not None else CodeSampling() for s in self.streams]
        filters = CodeFilters.of(samplings, codes, device)
        shape = (len(self.streams), max(self.codebooks, 1), filters.most)
        noise = torch.ones(shape, dtype=torch.float32, device=device)
        for row, stream in zip(noise, self.streams, strict=True):
            if stream is not None and stream.generator is not None:
                own = candidates(stream.sampling, codes)
                # In memory of its own, so that the numbers do not depend on the others' share.
                drawn = torch.empty(len(row), own, dtype=torch.float32, device=device)
                row[:, :own] = drawn.exponential_(generator=stream.generator)
        return noise, filters
