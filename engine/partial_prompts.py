"""Random numbers of requests whose prompt is read in parts.

A prompt that is longer than a step may be is read in several; what is sampled behind all but the
last of them is thrown away. Upstream lets the requests' generators draw for that and turns them
back afterwards, which only those of a GPU can be: on a processor it is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.outputs import SamplerOutput
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


class PartialPromptsMixin(GPUModelRunner):
    """Lets no request draw before its prompt is read. Mix in before a vLLM V1 model runner."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        """Builds the runner."""
        super().__init__(vllm_config, device)
        self._resting: dict[int, torch.Generator] = {}

    def _sample(
        self, logits: torch.Tensor | None, spec_decode_metadata: SpecDecodeMetadata | None
    ) -> SamplerOutput:
        """Samples as upstream does, without the generators of those requests."""
        generators = self.input_batch.generators
        partial = np.flatnonzero(self.discard_request_mask.np[: self.input_batch.num_reqs])
        self._resting = {i: generators.pop(i) for i in partial.tolist() if i in generators}
        return super()._sample(logits, spec_decode_metadata)

    # Upstream's decorator hides the method's type from the checker.
    def sample_tokens(  # type: ignore[override]
        self, grammar_output: GrammarOutput | None
    ) -> Any:
        """Samples as upstream does, and gives the generators back."""
        try:
            return super().sample_tokens(grammar_output)  # type: ignore[type-var]
        finally:
            self.input_batch.generators.update(self._resting)
            self._resting = {}
