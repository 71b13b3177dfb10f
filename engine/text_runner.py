"""The model runners of text stages, and the mixin for those whose states another stage reads.

The embeddings are caught where the runner hands them to the model, before the first layer adds to
them in place. The states of an inner layer come out of vLLM's own way for them, the auxiliary
hidden states of EAGLE-3; those of the last layer are what the logits are computed from.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from engine.first_runner import FirstRunnerWorker
from engine.hidden_states import FINAL_LAYER, LAYER_KEY, HiddenStateStore
from engine.partial_prompts import PartialPromptsMixin


class HiddenStateRunnerMixin(PartialPromptsMixin):
    """Keeps hidden states of requests that want them. Mix in before a vLLM V1 model runner."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        """Builds the runner with an empty store."""
        super().__init__(vllm_config, device)
        self.hidden_states = HiddenStateStore()
        additional = vllm_config.additional_config
        if not isinstance(additional, dict):
            raise TypeError("The configuration does not name the layer of the hidden states.")
        self.hidden_state_layer = int(additional[LAYER_KEY])
        self.use_aux_hidden_state_outputs = self.hidden_state_layer != FINAL_LAYER
        self._embeddings: torch.Tensor | None = None
        self._spans: list[tuple[str, int, int, int]] = []

    def _get_eagle3_aux_layers_from_config(self) -> tuple[int, ...] | None:
        return (self.hidden_state_layer,)

    def _preprocess(
        self,
        scheduler_output: SchedulerOutput,
        num_input_tokens: int,
        intermediate_tensors: Any | None = None,
    ) -> Any:
        inputs = super()._preprocess(scheduler_output, num_input_tokens, intermediate_tensors)
        self._spans = self._watched_spans(scheduler_output)
        self._embeddings = None
        if self._spans:
            token_ids, embeddings = inputs[0], inputs[1]
            if embeddings is None:
                model: Any = self.get_model()
                embeddings = model.embed_input_ids(token_ids)
            self._embeddings = embeddings.clone()
        return inputs

    def _watched_spans(self, scheduler_output: SchedulerOutput) -> list[tuple[str, int, int, int]]:
        """Request, first position, first row and last row + 1 of those that want their states."""
        spans: list[tuple[str, int, int, int]] = []
        row = 0
        starts = self.input_batch.num_computed_tokens_cpu
        for index, request_id in enumerate(self.input_batch.req_ids):
            count = scheduler_output.num_scheduled_tokens[request_id]
            if self.hidden_states.watches(request_id):
                spans.append((request_id, int(starts[index]), row, row + count))
            row += count
        return spans

    # Upstream's decorator hides the method's type from the checker.
    def sample_tokens(  # type: ignore[override]
        self, grammar_output: GrammarOutput | None
    ) -> Any:
        """Samples as upstream does, and keeps the states that are asked for."""
        state = self.execute_model_state
        output: Any = super().sample_tokens(grammar_output)
        embeddings, self._embeddings = self._embeddings, None
        if state is None or embeddings is None:
            return output
        hidden = state.hidden_states
        if state.aux_hidden_states is not None:
            (hidden,) = state.aux_hidden_states
        for request_id, position, first, stop in self._spans:
            rows, states = embeddings[first:stop], hidden[first:stop]
            self.hidden_states.append(request_id, position, rows, states)
        return output


class TextCPURunner(PartialPromptsMixin, CPUModelRunner):
    """vLLM's CPU runner."""


class TextCPUWorker(CPUWorker):
    """vLLM's CPU worker with a runner that also takes seeds with long prompts."""

    def init_device(self) -> None:
        """Sets the device up as upstream does, then takes that runner."""
        super().init_device()  # type: ignore[no-untyped-call]
        self.model_runner = TextCPURunner(self.vllm_config, torch.device("cpu"))


class HiddenStateCPURunner(HiddenStateRunnerMixin, CPUModelRunner):
    """The mixin over vLLM's CPU runner."""


class HiddenStateCPUWorker(CPUWorker):
    """vLLM's CPU worker with a runner that keeps hidden states."""

    def init_device(self) -> None:
        """Sets the device up as upstream does, then takes the runner that keeps hidden states."""
        super().init_device()  # type: ignore[no-untyped-call]
        self.hidden_state_runner = HiddenStateCPURunner(self.vllm_config, torch.device("cpu"))
        self.model_runner = self.hidden_state_runner

    def hidden_state_store(self) -> HiddenStateStore:
        """The states of this replica, for the stage that drives it in the same process."""
        return self.hidden_state_runner.hidden_states


class HiddenStateGPUWorker(FirstRunnerWorker):
    """vLLM's GPU worker with a runner that keeps hidden states, on the device."""

    def _make_model_runner(self) -> GPUModelRunner:
        """The runner that keeps hidden states, where upstream's subclasses construct theirs."""
        self.hidden_state_runner = HiddenStateRunnerMixin(
            self.vllm_config, self.require_first_runner()
        )
        return self.hidden_state_runner

    def hidden_state_store(self) -> HiddenStateStore:
        """The states of this replica, for the stage that drives it in the same process."""
        return self.hidden_state_runner.hidden_states
