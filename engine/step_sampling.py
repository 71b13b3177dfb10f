"""How the tokens and codes of a conditioned autoregressive stage are chosen, request by request.

The first codebook (the token) is sampled by vLLM's sampler. The other codebooks are completed by
the model's code predictor inside the step, and chosen as `engine.code_choice` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind

from engine.code_choice import GREEDY, CodeSampling
from engine.request import SpeechParameters


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
    codes: CodeSampling = GREEDY

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
