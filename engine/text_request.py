"""What a text stage is asked, what it keeps of it, and how its tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

from engine.chunk import TextPayload, ToolCallPayload, UsagePayload
from engine.hidden_states import HiddenStatesPayload
from engine.multimodal import MediaItem
from engine.tool_calls import CallRule

STRUCTURED_OUTPUT_BACKEND = "xgrammar"


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """What a text stage is asked.

    Attributes:
        token_ids: The whole prompt.
        max_tokens: The most tokens of the answer.
        temperature: 0 for greedy.
        top_p: Nucleus size.
        repetition_penalty: 1 for none.
        stop_token_ids: Tokens that end the answer, beside the model's own.
        calls: Whether the answer must or may be a tool call; None: it is words.
        call_token: What a call begins with. Where a call is allowed and not required, the answer
            is one if this token, its logit raised by `call_bias`, is the likeliest beginning.
        call_bias: See `call_token`.
        media: What the model's encoders read, for its placeholders in `token_ids`.
        parameter: The field of the request that it was made of, for what is wrong with it.
        hidden_states: Whether every position's hidden states are given out. Such a prompt is
            computed whole: what an earlier one left in the KV cache has no states any more.
    """

    token_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    stop_token_ids: tuple[int, ...] = ()
    calls: CallRule | None = None
    call_token: int = 0
    call_bias: float = 0.0
    media: tuple[MediaItem, ...] = ()
    parameter: str = "messages"
    hidden_states: bool = False

    @property
    def undecided(self) -> bool:
        """Whether the model decides between a call and words."""
        return self.calls is not None and not self.calls.required


@dataclass(slots=True)
class TextRequest:
    """What the replica keeps of one request."""

    request_id: str
    seed: int | None = None
    prompt: TextPrompt | None = None
    detokenizer: IncrementalDetokenizer | None = None
    has_credit: bool = True
    closed: bool = False
    submitted: bool = False
    cached_tokens: int | None = None
    output_tokens: int = 0
    deciding: bool = False
    calling: bool = False
    held_back: str = ""
    token_ids: list[int] = field(default_factory=list)
    places: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class TextOutput:
    """What a step gave one request."""

    request_id: str
    output: TextPayload | ToolCallPayload | UsagePayload | HiddenStatesPayload | None
    finished: bool


def answer_sampling(request: TextRequest, prompt: TextPrompt, room: int) -> SamplingParams:
    """How the tokens of an answer, or of a call, are chosen.

    Args:
        request: Whose answer it is.
        prompt: What is asked.
        room: The most tokens that the model has room for behind the prompt.
    """
    # A call is no matter of taste.
    rule = prompt.calls if request.calling else None
    return SamplingParams(
        temperature=prompt.temperature if rule is None else 0.0,
        top_p=prompt.top_p,
        repetition_penalty=prompt.repetition_penalty if rule is None else 1.0,
        seed=request.seed,
        max_tokens=min(prompt.max_tokens, room),
        stop_token_ids=list(prompt.stop_token_ids),
        structured_outputs=None if rule is None else _guided(rule),
        skip_reading_prefix_cache=prompt.hidden_states,
        output_kind=RequestOutputKind.DELTA,
    )


def decision_sampling(prompt: TextPrompt) -> SamplingParams:
    """How the one token is chosen that decides between a call and words."""
    return SamplingParams(
        temperature=0.0,
        max_tokens=1,
        logit_bias={prompt.call_token: prompt.call_bias},
        output_kind=RequestOutputKind.DELTA,
    )


def _guided(rule: CallRule) -> StructuredOutputsParams:
    parameters = StructuredOutputsParams(grammar=rule.grammar)
    # Upstream's input processor, which is not used here, chooses the backend in this field.
    parameters._backend = STRUCTURED_OUTPUT_BACKEND
    return parameters
