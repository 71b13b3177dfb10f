"""vLLM's GPU worker, where it runs a model runner of ours."""

from __future__ import annotations

import torch
from vllm.v1.worker.gpu_worker import Worker

from engine.errors import ConfigurationError


class FirstRunnerWorker(Worker):
    """A worker for runners that are derived from the first of vLLM's two."""

    def require_first_runner(self) -> torch.device:
        """The device for such a runner.

        Raises:
            ConfigurationError: vLLM was told to use its second model runner.
        """
        if self.use_v2_model_runner:
            raise ConfigurationError(
                "Stages that are conditioned, or give hidden states, run on vLLM's first model "
                "runner: set VLLM_USE_V2_MODEL_RUNNER=0 in the server's environment."
            )
        if self.device is None:
            raise RuntimeError("The worker's device is not set up yet.")
        return self.device
