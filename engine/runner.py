"""The model-runner mixin for conditioned stages, and the worker that uses it on processors.

Every step's input embedding comes from the request's feed, and once the token is sampled, the
model's code predictor completes the step's codes, on the same device and before the host knows the
token: the codes are on their way to the host when it waits for the tokens, which is the only time
in a step. The mixin relies on members of vLLM's V1 model runner (`_preprocess`, `_sample`,
`sample_tokens`, `execute_model_state`, `discard_request_mask`, and for rotary embeddings of several
rows `_init_mrope_positions`), which the CPU runner shares with the GPU runner; the supported vLLM
versions are pinned for that reason.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.outputs import ModelRunnerOutput, SamplerOutput
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_input_batch import CachedRequestState

from engine.code_choice import CodeChoice, CodeChooser, CodeStream
from engine.conditioned_model import ConditionedModel, gather_step_inputs
from engine.feed import FeedStore
from engine.partial_prompts import PartialPromptsMixin


class ConditionedRunnerMixin(PartialPromptsMixin):
    """Feeds in, codes out. Mix in before a vLLM V1 model runner."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        """Builds the runner with an empty feed store."""
        super().__init__(vllm_config, device)
        self.feeds = FeedStore()
        self._sampled_states: torch.Tensor | None = None
        self._codes: torch.Tensor | None = None

    @cached_property
    def conditioned_model(self) -> ConditionedModel:
        """The loaded model.

        Raises:
            TypeError: It is no conditioned one.
        """
        model = self.get_model()
        if not isinstance(model, ConditionedModel):
            raise TypeError(f"{type(model).__name__} is not a conditioned model.")
        return model

    @cached_property
    def _chooser(self) -> CodeChooser:
        model = self.conditioned_model
        return CodeChooser(model.codebooks - 1, model.residual_codes, self.device)

    def _preprocess(
        self,
        scheduler_output: SchedulerOutput,
        num_input_tokens: int,
        intermediate_tensors: Any | None = None,
    ) -> Any:
        positions = scheduler_output.total_num_scheduled_tokens
        # Every position is embedded below, so upstream need not embed the tokens first.
        self.is_token_ids.np[:positions] = False
        inputs = super()._preprocess(scheduler_output, num_input_tokens, intermediate_tensors)
        model, request_ids = self.conditioned_model, self.input_batch.req_ids
        starts = self.input_batch.num_computed_tokens_cpu[: len(request_ids)].tolist()
        counts = [scheduler_output.num_scheduled_tokens[i] for i in request_ids]
        feeds = [self.feeds.get(request_id) for request_id in request_ids]
        read = gather_step_inputs(model, feeds, starts, counts, self.device)
        self.inputs_embeds.gpu[:positions].copy_(model.embed_step(read))
        return (None, self.inputs_embeds.gpu[:num_input_tokens], *inputs[2:])

    def _init_mrope_positions(self, req_state: CachedRequestState) -> None:
        """Takes the prompt's places from the feed, where upstream asks the model about tokens."""
        feed = self.feeds.get(req_state.req_id)
        if feed is None:
            super()._init_mrope_positions(req_state)
            return
        places = feed.prompt_places(self.mrope_positions.cpu.shape[0])
        req_state.mrope_positions = torch.from_numpy(places)
        req_state.mrope_position_delta = int(places.max()) + 1 - places.shape[1]

    def _sample(
        self, logits: torch.Tensor | None, spec_decode_metadata: SpecDecodeMetadata | None
    ) -> SamplerOutput:
        """Samples as upstream does, completes the codes and sends them to the host.

        Codes are completed for the whole batch, since which requests end with their token is not
        known here. Those whose prompt is not read whole yet do not draw: a request's random
        numbers must not depend on how its prompt was parted.
        """
        output = super()._sample(logits, spec_decode_metadata)
        if self._sampled_states is None:
            raise RuntimeError("There are no states to complete codes from.")
        tokens = output.sampled_token_ids[:, 0].long()
        choice = self._chooser.choice(self._streams())
        codes = self._predict_codes(self._sampled_states, tokens, choice)
        # Upstream waits for the tokens next, on the same stream: the codes are here by then.
        self._codes = codes.to("cpu", non_blocking=True)
        return output

    def _streams(self) -> list[CodeStream | None]:
        """Who draws in this step, in batch order."""
        request_ids = self.input_batch.req_ids
        discarded = self.discard_request_mask.np[: len(request_ids)].tolist()
        feeds = [self.feeds.get(request_id) for request_id in request_ids]
        return [
            None if feed is None or partial else feed.code_stream
            for feed, partial in zip(feeds, discarded, strict=True)
        ]

    def _predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        return self.conditioned_model.predict_codes(hidden_states, tokens, choice)

    # Upstream's decorator hides the method's type from the checker.
    def sample_tokens(  # type: ignore[override]
        self, grammar_output: GrammarOutput | None
    ) -> Any:
        """Samples, completes each step's codes and sends them as the step's pooling output."""
        state = self.execute_model_state
        self._sampled_states = None if state is None else state.sample_hidden_states
        output: Any = super().sample_tokens(grammar_output)
        codes, self._codes, self._sampled_states = self._codes, None, None
        if codes is None:
            return output
        if not isinstance(output, ModelRunnerOutput):
            raise TypeError("Conditioned stages need synchronous scheduling.")
        output.pooler_output = self._kept(codes, output)
        return output

    def _kept(self, codes: torch.Tensor, output: ModelRunnerOutput) -> list[torch.Tensor | None]:
        """The codes of each request that goes on with its token; their feeds keep them."""
        end = self.conditioned_model.end_token
        results: list[torch.Tensor | None] = [None] * len(output.req_ids)
        values = codes.numpy()
        for index, tokens in enumerate(output.sampled_token_ids):
            if not tokens or tokens[0] == end:
                continue
            results[index] = codes[index]
            feed = self.feeds.get(output.req_ids[index])
            if feed is not None:
                feed.codes.extend(values[index : index + 1])
        return results


class ConditionedCPURunner(ConditionedRunnerMixin, CPUModelRunner):
    """The mixin over vLLM's CPU runner."""


class OmniCPUWorker(CPUWorker):
    """vLLM's CPU worker with a runner that conditions steps and completes codes."""

    def init_device(self) -> None:
        """Sets the device up as upstream does, then takes the conditioned runner."""
        super().init_device()  # type: ignore[no-untyped-call]
        self.conditioned_runner = ConditionedCPURunner(self.vllm_config, torch.device("cpu"))
        self.model_runner = self.conditioned_runner

    def feed_store(self) -> FeedStore:
        """The feeds of this replica, for the stage that drives it in the same process."""
        return self.conditioned_runner.feeds
