"""One replica of an autoregressive stage: a vLLM engine core, driven in this process.

The replica adds, holds, steps and aborts requests; where their output goes is not its business
(invariant 3). All calls come from the host's one engine thread, since vLLM's forward context and
current configuration are global to the process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.core import EngineCore

from engine.adapter import FeedRows, StepOutput
from engine.code_choice import CodeStream
from engine.conditioned_model import ConditionedModel
from engine.core import CoreSettings, build_core, key_value_blocks_in_use, scheduler_of
from engine.device import on_device
from engine.errors import InvalidRequestError
from engine.feed import Feed, FeedStore, GrowingVectors
from engine.request import SpeechParameters
from engine.scheduler import OmniARScheduler
from engine.step_sampling import SamplingOf, StepSampling, plain_sampling


@dataclass(slots=True)
class AutoregressiveRequest:
    """What the replica keeps of one request.

    Attributes:
        request_id: Its identifier in the core.
        feed: Its conditioning.
        sampling: How its tokens and codes are chosen.
        submitted: Whether the core knows it already.
        has_credit: Whether its output may grow.
        steps_taken: How many outputs it has given.
    """

    request_id: str
    feed: Feed
    sampling: StepSampling
    submitted: bool = False
    has_credit: bool = True
    steps_taken: int = 0

    @property
    def spent(self) -> bool:
        """Whether every row was computed, none will come, and nothing stands in for it."""
        return self.feed.closed and not self.feed.can_step


@dataclass(frozen=True, slots=True)
class AutoregressiveOutput:
    """What a step gave one request.

    Attributes:
        request_id: Whose it is.
        output: The step's codes; None when the request ended without a further step.
        finished: Whether it was the request's last.
    """

    request_id: str
    output: StepOutput | None
    finished: bool


@dataclass(slots=True)
class AutoregressiveReplica:
    """A conditioned engine core and its requests.

    Attributes:
        settings: How the core is built.
        sampling_of: How a request's tokens and codes are chosen.
    """

    settings: CoreSettings
    sampling_of: SamplingOf = plain_sampling
    core: EngineCore = field(init=False)
    model: ConditionedModel = field(init=False)
    feeds: FeedStore = field(init=False)
    requests: dict[str, AutoregressiveRequest] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Builds the core."""
        self.core = build_core(self.settings)
        self.feeds = self.core.model_executor.collective_rpc("feed_store")[0]
        model = self.core.model_executor.collective_rpc("get_model")[0]
        if not isinstance(model, ConditionedModel):
            raise TypeError(f"{type(model).__name__} is not a conditioned model.")
        self.model = model

    @property
    def scheduler(self) -> OmniARScheduler:
        """The core's scheduler."""
        return scheduler_of(self.core)

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request; it reaches the core with its first conditioning row."""
        model, device = self.model, torch.device(self.settings.device)
        vectors = None
        if model.vector_width:
            dtype = self.core.vllm_config.model_config.dtype
            if not isinstance(dtype, torch.dtype):
                raise TypeError(f"The core's dtype is {dtype!r}; vLLM should have resolved it.")
            vectors = GrowingVectors(model.vector_width, dtype, device)
        feed = Feed(model.row_width, model.row_dtype, model.codebooks, vectors)
        self.feeds.add(request_id, feed)
        sampling = self.sampling_of(parameters)
        feed.code_stream = CodeStream(sampling.codes, sampling.seed, device)
        self.requests[request_id] = AutoregressiveRequest(request_id, feed, sampling)

    def wants_input(self, request_id: str) -> bool:
        """Whether the request has fewer rows ahead than the deployment allows."""
        return self.requests[request_id].feed.steps_ahead < self.settings.input_limit

    def offer(self, request_id: str, payload: FeedRows) -> None:
        """Adds conditioning rows, one for each coming step.

        Raises:
            InvalidRequestError: They are more than a request's steps may be; the core would end it
                there as if it were done.
        """
        request = self.requests[request_id]
        most = self.settings.max_steps - 1
        if len(request.feed.rows) + len(payload.values) > most:
            raise InvalidRequestError(
                "text",
                f"The input is longer than the {most} steps of a request. Send it in parts, or "
                "deploy the stage with more max_steps.",
            )
        request.feed.append(payload)
        if not request.submitted and len(request.feed.rows):
            self._submit(request)

    def close_input(self, request_id: str) -> None:
        """Ends the conditioning: without padding the request finishes, by length, with it."""
        request = self.requests[request_id]
        request.feed.close()
        if request.submitted and request.feed.padding is None:
            self._limit(request)

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        """Says whether the request's output may grow."""
        self.requests[request_id].has_credit = has_credit

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        """Requests that would take part in a step now, whatever their slack."""
        del slacks
        return [i for i, r in self.requests.items() if self._may_run(r) or r.spent]

    @property
    def needs_cleaning(self) -> bool:
        """Whether aborted requests still sit in the worker's batch; a step takes them out."""
        return bool(self.scheduler.has_finished_requests())

    def _may_run(self, request: AutoregressiveRequest) -> bool:
        return request.has_credit and request.feed.can_step

    def _limit(self, request: AutoregressiveRequest) -> None:
        core_request = self.scheduler.requests[request.request_id]
        steps = len(request.feed.rows) - request.feed.prompt_rows + 1
        core_request.max_tokens = min(steps, core_request.max_tokens)

    def _submit(self, request: AutoregressiveRequest) -> None:
        prompt_rows = request.feed.prompt_rows
        sampling = request.sampling.vllm_parameters(
            self.settings.max_steps - prompt_rows, self.model.end_token
        )
        core_request = EngineCoreRequest(
            request_id=request.request_id,
            prompt_token_ids=[self.model.begin_token] * prompt_rows,
            mm_features=None,
            sampling_params=sampling,
            pooling_params=None,
            arrival_time=time.time(),
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )
        self.core.add_request(*self.core.preprocess_add_request(core_request))
        request.submitted = True

    def step(self, slacks: Mapping[str, float]) -> list[AutoregressiveOutput]:
        """One step of the core over every request that has a row and credit."""
        del slacks
        ended = [self._end(request) for request in list(self.requests.values()) if request.spent]
        held = frozenset(i for i, r in self.requests.items() if not self._may_run(r))
        self.scheduler.hold(held)
        with on_device(self.settings.device):
            outputs, executed = self.core.step_fn()
            self.core.post_step(executed)
        core_outputs = outputs[0].outputs if outputs and 0 in outputs else []
        return ended + [self._convert(output) for output in core_outputs]

    def _end(self, request: AutoregressiveRequest) -> AutoregressiveOutput:
        """Finishes a request whose feed closed only after its last row was computed."""
        self.abort(request.request_id)
        return AutoregressiveOutput(request.request_id, None, finished=True)

    def _convert(self, output: EngineCoreOutput) -> AutoregressiveOutput:
        request = self.requests[output.request_id]
        step: StepOutput | None = None
        codes = output.pooling_output
        if isinstance(codes, torch.Tensor):
            step = StepOutput(codes.numpy(), None, request.feed.tag_of(request.steps_taken))
            request.steps_taken += 1
        if output.finish_reason is not None:
            self._forget(output.request_id)
            if output.finish_reason not in (FinishReason.LENGTH, FinishReason.STOP):
                raise RuntimeError(f"The core ended a request by {output.finish_reason}.")
        return AutoregressiveOutput(output.request_id, step, output.finish_reason is not None)

    def abort(self, request_id: str) -> None:
        """Takes a request out of the core, its KV blocks and its feed; idempotent."""
        request = self.requests.get(request_id)
        if request is None:
            return
        if request.submitted:
            self.core.abort_requests([request_id])
        self._forget(request_id)

    def _forget(self, request_id: str) -> None:
        self.requests.pop(request_id, None)
        self.feeds.remove(request_id)

    def key_value_blocks_in_use(self) -> int:
        """Blocks of the KV cache that requests hold."""
        return key_value_blocks_in_use(self.core)

    def close(self) -> None:
        """Frees the core."""
        self.core.shutdown()
