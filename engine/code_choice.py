"""How the codes behind the sampled token are chosen, request by request and without waiting.

What differs from step to step is tensors that are made before a model's code predictor runs; the
choice itself is a pure function of them, which can be a part of a CUDA graph. Every request has a
generator of its own, keyed by request and never by place in the batch: its codes are the same
alone and in a batch, and a seed repeats them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.device import to_device
from engine.request import LARGEST_SEED

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


GREEDY = CodeSampling()


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


def candidates(sampling: CodeSampling, codes: int) -> int:
    """How many of so many codes a request chooses from."""
    if sampling.temperature <= 0:
        return 1
    return min(sampling.top_k, codes) if sampling.top_k > 0 else codes


@dataclass(frozen=True, slots=True)
class CodeFilters:
    """The requests' ways of choosing as tensors, each of shape [requests, 1].

    Attributes:
        warm: Which requests sample, bool.
        heat: Temperatures, float32; 1 for requests that do not sample.
        top_k: How many codes they choose from, int64.
        top_p: Nucleus sizes, float32; infinite where there is no limit.
    """

    warm: torch.Tensor
    heat: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor

    @classmethod
    def of(cls, samplings: Sequence[CodeSampling], codes: int, device: torch.device) -> CodeFilters:
        """For codebooks of that many codes."""

        def column(values: Sequence[float]) -> torch.Tensor:
            return to_device(torch.tensor(values), device)[:, None]

        return cls(
            column([sampling.temperature > 0 for sampling in samplings]),
            column([s.temperature if s.temperature > 0 else 1.0 for s in samplings]),
            column([candidates(sampling, codes) for sampling in samplings]),
            column([s.top_p if s.top_p < 1.0 else torch.inf for s in samplings]),
        )


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """The choices of one step's residual codes.

    Attributes:
        noise: Exponential noise by rank of the codes, float32, shape [requests, residual codebooks,
            candidates]: as many candidates as some request has.
        filters: How the requests choose.
        limits: Whether some request has fewer candidates than others.
        nucleus: Whether some request limits its nucleus.
    """

    noise: torch.Tensor
    filters: CodeFilters
    limits: bool
    nucleus: bool

    def of_codebook(self, logits: torch.Tensor, index: int) -> torch.Tensor:
        """Chooses codes after temperature, top-k and top-p, in this order.

        As transformers' warpers do. The largest ratio of a probability to exponential noise stands
        at each code with just that probability, so that nothing has to be read back.

        Args:
            logits: Shape [requests, codes].
            index: Which residual codebook it is, from 0.

        Returns:
            int64, shape [requests].
        """
        filters, most = self.filters, self.noise.shape[-1]
        values, codes = logits.topk(most)
        scaled = values.float() / filters.heat
        if self.limits:
            ranks = torch.arange(most, device=logits.device)
            scaled = scaled.masked_fill(ranks >= filters.top_k, -torch.inf)
        probabilities = scaled.softmax(dim=-1)
        if self.nucleus:
            likelier = probabilities.cumsum(dim=-1) - probabilities
            probabilities = probabilities.masked_fill(likelier >= filters.top_p, 0.0)
        rank = (probabilities / self.noise[:, index]).argmax(dim=-1, keepdim=True)
        return codes.gather(1, rank * filters.warm).squeeze(1)


def choose(choice: CodeChoice | None, logits: torch.Tensor, index: int) -> torch.Tensor:
    """The codes of a residual codebook, int64, shape [requests]; the most probable without choice.

    Args:
        choice: The step's; None if every request takes the most probable codes.
        logits: Shape [requests, codes].
        index: Which residual codebook it is, from 0.
    """
    return logits.argmax(dim=-1) if choice is None else choice.of_codebook(logits, index)


class CodeChooser:
    """Makes the choices of steps; what stays the same from step to step is made once."""

    def __init__(self, residual: int, codes: int, device: torch.device) -> None:
        """For a model.

        Args:
            residual: Its codebooks behind the first.
            codes: Codes in each of them; 0 if the model only knows the most probable ones.
            device: Where it computes.
        """
        self._shape = (residual, codes)
        self._device = device
        self._samplings: tuple[CodeSampling, ...] = ()
        self._filters: CodeFilters | None = None

    def choice(self, streams: Sequence[CodeStream | None]) -> CodeChoice | None:
        """The next step's choices, for which each stream draws once.

        Args:
            streams: The requests', in batch order; None: its most probable codes are taken.
        """
        if 0 in self._shape or all(s is None or s.generator is None for s in streams):
            return None
        samplings = tuple(GREEDY if s is None else s.sampling for s in streams)
        codes = self._shape[1]
        if self._filters is None or samplings != self._samplings:
            self._samplings = samplings
            self._filters = CodeFilters.of(samplings, codes, self._device)
        shares = [candidates(sampling, codes) for sampling in samplings]
        return CodeChoice(
            self._noise(streams, shares),
            self._filters,
            limits=min(shares) < max(shares),
            nucleus=any(s.top_p < 1.0 for s in samplings if s.temperature > 0),
        )

    def _noise(self, streams: Sequence[CodeStream | None], shares: Sequence[int]) -> torch.Tensor:
        """Each request draws as much noise as it has candidates, whoever else is there."""
        shape = (len(streams), self._shape[0], max(shares))
        noise = torch.ones(shape, dtype=torch.float32, device=self._device)
        for row, stream, share in zip(noise, streams, shares, strict=True):
            if stream is not None and stream.generator is not None:
                # In memory of its own, so that the numbers do not depend on the others' share.
                drawn = torch.empty(len(row), share, dtype=torch.float32, device=self._device)
                row[:, :share] = drawn.exponential_(generator=stream.generator)
        return noise
