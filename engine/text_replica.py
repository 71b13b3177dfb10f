"""One replica of a text stage (a Thinker): a vLLM engine core that writes text.

The core shares the KV of equal beginnings between requests, so that a conversation's history is
not computed again with every turn.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from vllm import SamplingParams
from vllm.model_executor.models.interfaces import supports_mrope
from vllm.tokenizers import TokenizerLike
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.core import EngineCore
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

from engine.chunk import TextPayload, ToolCallPayload, UsagePayload
from engine.core import CoreSettings, build_core, key_value_blocks_in_use, scheduler_of
from engine.device import on_device
from engine.encoder_cache import encode_ahead
from engine.errors import InvalidRequestError
from engine.hidden_states import HiddenStatesPayload, HiddenStateStore
from engine.multimodal import AUDIO, MediaItem, feature_specs
from engine.request import SpeechParameters
from engine.text_request import (
    TextOutput,
    TextPrompt,
    TextRequest,
    answer_sampling,
    decision_sampling,
)
from engine.tool_calls import parse_tool_call


@dataclass(slots=True)
class TextReplica:
    """An engine core that writes text, and its requests.

    Attributes:
        settings: How the core is built.
        tokenizer: The model's tokenizer.
    """

    settings: CoreSettings
    tokenizer: TokenizerLike
    core: EngineCore = field(init=False)
    hidden_states: HiddenStateStore | None = field(init=False, default=None)
    requests: dict[str, TextRequest] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Builds the core."""
        self.core = build_core(self.settings)
        if self.settings.hidden_layer is not None:
            executor = self.core.model_executor
            self.hidden_states = executor.collective_rpc("hidden_state_store")[0]

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request; of how it is to be spoken only the seed matters here."""
        if request_id in self.requests:
            raise ValueError(f"Request {request_id!r} is open already.")
        self.requests[request_id] = TextRequest(request_id, seed=parameters.seed)

    def wants_input(self, request_id: str) -> bool:
        """Whether the request's prompt or its end has not come yet."""
        return not self.requests[request_id].closed

    def offer(self, request_id: str, payload: TextPrompt) -> None:
        """Takes the prompt.

        Raises:
            ValueError: There is one already.
            InvalidRequestError: It is longer than the model's context.
        """
        request = self.requests[request_id]
        if request.prompt is not None:
            raise ValueError("A request has one prompt; a second one came.")
        if len(payload.token_ids) >= self.settings.max_steps:
            raise InvalidRequestError(
                payload.parameter,
                f"The input has {len(payload.token_ids)} tokens; the model takes at most "
                f"{self.settings.max_steps - 1}. Make it shorter, or leave out what is oldest.",
            )
        request.prompt = payload
        request.token_ids.extend(payload.token_ids)
        if payload.undecided:
            request.deciding = True
            self._submit(request, payload, decision_sampling(payload))
        else:
            request.calling = payload.calls is not None
            self._answer(request, payload)

    def close_input(self, request_id: str) -> None:
        """Ends the input.

        Raises:
            ValueError: There was no prompt in it, so that there will be no answer.
        """
        request = self.requests[request_id]
        request.closed = True
        if request.prompt is None:
            raise ValueError("The input ended without a prompt; there is nothing to read.")

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        """Says whether the request's output may grow."""
        self.requests[request_id].has_credit = has_credit

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        """Requests that would take part in a step now, whatever their slack."""
        del slacks
        return [i for i, r in self.requests.items() if r.prompt is not None and r.has_credit]

    @property
    def needs_cleaning(self) -> bool:
        """Whether aborted requests still sit in the worker's batch; a step takes them out."""
        return bool(scheduler_of(self.core).has_finished_requests())

    def step(self, slacks: Mapping[str, float]) -> list[TextOutput]:
        """One step of the core over every request that has a prompt and credit."""
        del slacks
        held = frozenset(i for i, r in self.requests.items() if not r.has_credit)
        scheduler_of(self.core).hold(held)
        with on_device(self.settings.device):
            outputs, executed = self.core.step_fn()
            self.core.post_step(executed)
        core_outputs = outputs[0].outputs if outputs and 0 in outputs else []
        return [made for output in core_outputs for made in self._convert(output)]

    def encode(self, item: MediaItem) -> bool:
        """Encodes an item of a coming prompt; False: it was known, or there is no room for it."""
        with on_device(self.settings.device):
            return encode_ahead(self.core, item)

    def _answer(self, request: TextRequest, prompt: TextPrompt) -> None:
        room = self.settings.max_steps - len(prompt.token_ids)
        self._submit(request, prompt, answer_sampling(request, prompt, room))

    def _submit(self, request: TextRequest, prompt: TextPrompt, sampling: SamplingParams) -> None:
        sampling.update_from_generation_config({}, self.tokenizer.eos_token_id)
        core_request = EngineCoreRequest(
            request_id=request.request_id,
            prompt_token_ids=list(prompt.token_ids),
            mm_features=feature_specs(prompt.media),
            sampling_params=sampling,
            pooling_params=None,
            arrival_time=time.time(),
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )
        request.detokenizer = IncrementalDetokenizer.from_new_request(self.tokenizer, core_request)
        if prompt.hidden_states and not (request.deciding or request.calling):
            self._watch(request, prompt)
        self.core.add_request(*self.core.preprocess_add_request(core_request))
        request.submitted = True

    def _watch(self, request: TextRequest, prompt: TextPrompt) -> None:
        if self.hidden_states is None:
            raise ValueError("Hidden states were asked for; the stage is built without them.")
        self.hidden_states.watch(request.request_id)
        request.places = self._places(prompt)

    def _places(self, prompt: TextPrompt) -> torch.Tensor | None:
        """Where the model has a prompt's tokens, if some do not count up: those of pictures."""
        model: object = self.core.model_executor.collective_rpc("get_model")[0]
        if not supports_mrope(model) or all(item.modality == AUDIO for item in prompt.media):
            return None
        specs = feature_specs(prompt.media) or []
        places, _ = model.get_mrope_input_positions(list(prompt.token_ids), specs)
        return places

    def _convert(self, output: EngineCoreOutput) -> list[TextOutput]:
        request = self.requests[output.request_id]
        finished = output.finish_reason is not None
        if request.deciding:
            return self._decide(request, output)
        if output.prefill_stats is not None and request.cached_tokens is None:
            request.cached_tokens = output.prefill_stats.num_cached_tokens
        request.output_tokens += len(output.new_token_ids)
        made = self._states(request)
        request.token_ids.extend(output.new_token_ids)
        text = self._text(request, output, finished)
        if text and request.calling:
            request.held_back += text
        elif text:
            made.append(TextOutput(request.request_id, TextPayload(text), finished=False))
        if finished:
            made.extend(self._end(request, output.finish_reason))
        return made

    def _states(self, request: TextRequest) -> list[TextOutput]:
        """The hidden states of the positions that were computed since the last call."""
        rows = None
        if self.hidden_states is not None:
            rows = self.hidden_states.take(request.request_id)
        if rows is None or request.prompt is None:
            return []
        payload = HiddenStatesPayload(
            start=rows.start,
            token_ids=tuple(request.token_ids[rows.start : rows.stop]),
            prompt_tokens=len(request.prompt.token_ids),
            embeddings=torch.cat(rows.embeddings),
            states=torch.cat(rows.states),
            places=None if request.places is None else request.places[:, rows.start : rows.stop],
        )
        return [TextOutput(request.request_id, payload, finished=False)]

    def _decide(self, request: TextRequest, output: EngineCoreOutput) -> list[TextOutput]:
        """Goes on with a call or with words, as the first token says; its prompt is known now."""
        prompt = request.prompt
        assert prompt is not None
        if output.prefill_stats is not None:
            request.cached_tokens = output.prefill_stats.num_cached_tokens
        if output.finish_reason is not None:
            request.deciding = False
            request.calling = output.new_token_ids == [prompt.call_token]
            self._answer(request, prompt)
        return []

    @staticmethod
    def _text(request: TextRequest, output: EngineCoreOutput, finished: bool) -> str:
        if request.detokenizer is None:
            return ""
        stopped = output.finish_reason is FinishReason.STOP
        request.detokenizer.update(output.new_token_ids, stopped)
        return request.detokenizer.get_next_output_text(finished, delta=True)

    def _end(self, request: TextRequest, reason: FinishReason | None) -> list[TextOutput]:
        self._forget(request.request_id)
        if reason not in (FinishReason.STOP, FinishReason.LENGTH):
            raise RuntimeError(f"The core ended a request by {reason}.")
        made: list[TextOutput] = []
        # Where the limit cut a call off, there is none.
        if request.held_back and reason is FinishReason.STOP:
            name, arguments = parse_tool_call(request.held_back)
            call = ToolCallPayload(f"call_{uuid.uuid4().hex[:21]}", name, arguments)
            made.append(TextOutput(request.request_id, call, finished=False))
        usage = UsagePayload(
            input_tokens=0 if request.prompt is None else len(request.prompt.token_ids),
            cached_tokens=request.cached_tokens or 0,
            output_tokens=request.output_tokens,
            truncated=reason is FinishReason.LENGTH,
        )
        made.append(TextOutput(request.request_id, usage, finished=True))
        return made

    def abort(self, request_id: str) -> None:
        """Takes a request out of the core and its KV blocks; idempotent."""
        request = self.requests.get(request_id)
        if request is not None and request.submitted:
            self.core.abort_requests([request_id])
        self._forget(request_id)

    def _forget(self, request_id: str) -> None:
        self.requests.pop(request_id, None)
        if self.hidden_states is not None:
            self.hidden_states.forget(request_id)

    def key_value_blocks_in_use(self) -> int:
        """Blocks of the KV cache that requests hold."""
        return key_value_blocks_in_use(self.core)

    def close(self) -> None:
        """Frees the core."""
        self.core.shutdown()
