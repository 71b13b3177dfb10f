"""The model-runner mixin for conditioned stages, and the workers that use it.

Every step's input embedding comes from the request's feed, and after the token is sampled the
model's code predictor completes the step's codes inside the same step. The mixin relies on four
members of vLLM's V1 model runner (`_preprocess`, `execute_model_state`, `sample_tokens`, and for
rotary embeddings of several rows `_init_mrope_positions`), which the CPU runner shares with the GPU
runner; the supported vLLM versions are pinned for that reason.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_input_batch import CachedRequestState
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from engine.conditioned_model import ConditionedModel, gather_step_inputs
from engine.feed import FeedStore
from engine.step_sampling import CodeChooser


class ConditionedRunnerMixin(GPUModelRunner):
    """Feeds in, codes out. Mix in before a vLLM V1 model runner."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        """Builds the runner with an empty feed store."""
        super().__init__(vllm_config, device)
        self.feeds = FeedStore()

    def _conditioned_model(self) -> ConditionedModel | None:
        model = self.get_model()
        return model if isinstance(model, ConditionedModel) else None

    def _preprocess(
        self,
        scheduler_output: SchedulerOutput,
        num_input_tokens: int,
        intermediate_tensors: Any | None = None,
    ) -> Any:
        model = self._conditioned_model()
        if model is not None:
            # Every position is embedded below, so upstream need not embed the tokens first.
            self.is_token_ids.np[: scheduler_output.total_num_scheduled_tokens] = False
        inputs = super()._preprocess(scheduler_output, num_input_tokens, intermediate_tensors)
        if model is None:
            return inputs
        request_ids = self.input_batch.req_ids
        starts = self.input_batch.num_computed_tokens_cpu[: len(request_ids)].tolist()
        counts = [scheduler_output.num_scheduled_tokens[i] for i in request_ids]
        feeds = [self.feeds.get(request_id) for request_id in request_ids]
        rows, codes = gather_step_inputs(model, feeds, starts, counts)
        tokens = self.input_ids.gpu[: len(rows)]
        embeds = model.embed_step(tokens.long(), rows.to(self.device), codes.to(self.device))
        self.inputs_embeds.gpu[: len(rows)].copy_(embeds)
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

    # Upstream's decorator hides the method's type from the checker.
    def sample_tokens(  # type: ignore[override]
        self, grammar_output: GrammarOutput | None
    ) -> Any:
        """Samples, completes each step's codes and sends them as the step's pooling output."""
        state = self.execute_model_state
        output: Any = super().sample_tokens(grammar_output)  # type: ignore[type-var]
        model = self._conditioned_model()
        if state is None or model is None:
            return output
        if not isinstance(output, ModelRunnerOutput):
            raise TypeError("Conditioned stages need synchronous scheduling.")
        with torch.inference_mode():
            self._complete_codes(model, state.sample_hidden_states, output)
        return output

    def _complete_codes(
        self, model: ConditionedModel, hidden_states: torch.Tensor, output: ModelRunnerOutput
    ) -> None:
        """Runs the code predictor for the requests that sampled a token in this step."""
        end = model.end_token
        sampled = [
            index
            for index, tokens in enumerate(output.sampled_token_ids)
            if tokens and tokens[0] != end
        ]
        results: list[torch.Tensor | None] = [None] * len(output.req_ids)
        if sampled:
            tokens = torch.tensor(
                [output.sampled_token_ids[index][0] for index in sampled], device=self.device
            )
            feeds = [self.feeds.get(output.req_ids[index]) for index in sampled]
            streams = [None if feed is None else feed.code_stream for feed in feeds]
            choose = CodeChooser(streams, model.codebooks - 1)
            codes = model.predict_codes(hidden_states[sampled], tokens, choose).cpu()
            for index, row, feed in zip(sampled, codes, feeds, strict=True):
                results[index] = row
                if feed is not None:
                    feed.codes.extend(row.numpy()[None])
        output.pooler_output = results


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
