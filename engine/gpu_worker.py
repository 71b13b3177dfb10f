"""The worker of conditioned stages on a CUDA GPU; imported by vLLM, by its dotted name."""

from __future__ import annotations

from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.gpu_worker import Worker

from engine.errors import ConfigurationError
from engine.feed import FeedStore
from engine.runner import ConditionedRunnerMixin


class ConditionedGPURunner(ConditionedRunnerMixin):
    """The mixin over vLLM's GPU runner (V1), which the mixin derives from itself.

    The transformer runs as vLLM's CUDA graphs; embeddings and code predictor run beside them, on
    the same stream. The host waits for the device twice a step: for the sampled tokens, as
    upstream does without asynchronous scheduling, and for the codes.
    """


class OmniGPUWorker(Worker):
    """vLLM's GPU worker with a runner that conditions steps and completes codes."""

    def _make_model_runner(self) -> GPUModelRunner:
        """The conditioned runner, where upstream's subclasses construct theirs.

        Raises:
            ConfigurationError: vLLM was told to use its second model runner.
        """
        if self.use_v2_model_runner:
            raise ConfigurationError(
                "Conditioned stages run on vLLM's first model runner: set "
                "VLLM_USE_V2_MODEL_RUNNER=0 in the server's environment."
            )
        if self.device is None:
            raise RuntimeError("The worker's device is not set up yet.")
        self.conditioned_runner = ConditionedGPURunner(self.vllm_config, self.device)
        return self.conditioned_runner

    def feed_store(self) -> FeedStore:
        """The feeds of this replica, for the stage that drives it in the same process."""
        return self.conditioned_runner.feeds
