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

import torch
from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

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
        return SamplingParams(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            repetition_penalty=self.repetition_penalty,
            allowed_token_ids=None if self.allowed_tokens is None else list(self.allowed_tokens),
            min_tokens=min(self.minimum_steps, most) if end_token is not None else 0,
            stop_token_ids=None if end_token is None else [end_token],
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
    _used: int = 0
    _warm: bool = field(init=False)

    def __post_init__(self) -> None:
        self._warm = any(s is not None and s.generator is not None for s in self.streams)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Chooses the codes of the next codebook."""
        greedy = logits.argmax(dim=-1)
        if not self._warm:
            return greedy
        samplings = [s.sampling if s is not None else CodeSampling() for s in self.streams]
        warm = torch.tensor([s.temperature > 0 for s in samplings], device=logits.device)
        probabilities = _probabilities(logits, samplings)
        sampled = (probabilities / self._next_noise(logits)).argmax(dim=-1)
        return torch.where(warm, sampled, greedy)

    def _next_noise(self, logits: torch.Tensor) -> torch.Tensor:
        """Exponential noise, shape [requests, codes].

        The largest ratio of a probability to it stands at each code with just that probability,
        so that nothing has to be read back from the device.
        """
        codes = logits.shape[-1]
        if self._noise is None or self._noise.shape[-1] != codes or self._used == self.codebooks:
            shape = (len(self.streams), max(self.codebooks, 1), codes)
            self._noise = torch.ones(shape, dtype=torch.float32, device=logits.device)
            for row, stream in zip(self._noise, self.streams, strict=True):
                if stream is not None and stream.generator is not None:
                    row.exponential_(generator=stream.generator)
            self._used = 0
        self._used += 1
        return self._noise[:, self._used - 1]


def _probabilities(logits: torch.Tensor, samplings: Sequence[CodeSampling]) -> torch.Tensor:
    """Probabilities after temperature, top-k and top-p, in this order; greedy rows do not matter.

    The filters are vLLM's, which are those of transformers' warpers.
    """
    device, codes = logits.device, logits.shape[-1]
    heat = torch.tensor([s.temperature if s.temperature > 0 else 1.0 for s in samplings])
    scaled = logits.float() / heat.to(device)[:, None]
    top_k = top_p = None
    if any(0 < s.top_k < codes for s in samplings):
        kept = [min(s.top_k, codes) if s.top_k > 0 else codes for s in samplings]
        top_k = torch.tensor(kept, dtype=torch.int32, device=device)
    if any(s.top_p < 1.0 for s in samplings):
        top_p = torch.tensor([s.top_p for s in samplings], device=device)
    return apply_top_k_top_p(scaled, top_k, top_p).softmax(dim=-1)
