"""The worker of conditioned stages on a CUDA GPU; imported by vLLM, by its dotted name."""

from __future__ import annotations

import torch
from vllm.config import VllmConfig
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.worker_base import CompilationTimes

from engine.code_choice import CodeChoice
from engine.code_graphs import BATCH_SIZES_KEY, CodeGraphs
from engine.feed import FeedStore
from engine.first_runner import FirstRunnerWorker
from engine.runner import ConditionedRunnerMixin


class ConditionedGPURunner(ConditionedRunnerMixin):
    """The mixin over vLLM's GPU runner (V1), which the mixin derives from itself.

    The transformer runs as vLLM's CUDA graphs, the code predictor as ours; embeddings run beside
    them, on the same stream. The host waits for the device once a step, where upstream does.
    """

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        """Builds the runner; nothing is captured yet."""
        super().__init__(vllm_config, device)
        additional = vllm_config.additional_config
        told = additional if isinstance(additional, dict) else {}
        self._batch_sizes: list[int] = told.get(BATCH_SIZES_KEY, [])
        self._graphs: CodeGraphs | None = None

    def capture_codes(self) -> None:
        """Captures the code predictor at the batch sizes that the deployment names."""
        self._graphs = CodeGraphs(self.conditioned_model, self._batch_sizes, self.device)
        self._graphs.capture(torch.zeros_like(self.inputs_embeds.gpu[:1]))

    def _predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        if self._graphs is None:
            return super()._predict_codes(hidden_states, tokens, choice)
        return self._graphs.predict_codes(hidden_states, tokens, choice)


class OmniGPUWorker(FirstRunnerWorker):
    """vLLM's GPU worker with a runner that conditions steps and completes codes."""

    def _make_model_runner(self) -> GPUModelRunner:
        """The conditioned runner, where upstream's subclasses construct theirs."""
        self.conditioned_runner = ConditionedGPURunner(
            self.vllm_config, self.require_first_runner()
        )
        return self.conditioned_runner

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """Warms up and captures the transformer as upstream does, then captures code predictors."""
        times = super().compile_or_warm_up_model()
        self.conditioned_runner.capture_codes()
        return times

    def feed_store(self) -> FeedStore:
        """The feeds of this replica, for the stage that drives it in the same process."""
        return self.conditioned_runner.feeds
