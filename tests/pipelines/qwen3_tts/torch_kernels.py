"""torch's own operations in the place of vLLM's kernels."""

from __future__ import annotations

import torch
from torch.nn import functional


class TorchKernels:
    """See `pipelines.qwen3_tts.frame_transformer.FrameKernels`."""

    def norm(
        self, result: torch.Tensor, values: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        result.copy_(functional.rms_norm(values, weight.shape, weight, epsilon))

    def add_norm(
        self, values: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        residual.add_(values)
        values.copy_(functional.rms_norm(residual, weight.shape, weight, epsilon))

    def rotate(
        self,
        positions: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        head_dim: int,
        turns: torch.Tensor,
    ) -> None:
        cosines, sines = turns[positions].unsqueeze(1).chunk(2, dim=-1)
        for values in (query, key):
            heads = values.view(len(values), -1, head_dim)
            first, second = heads.clone().chunk(2, dim=-1)
            turned = [first * cosines - second * sines, second * cosines + first * sines]
            heads.copy_(torch.cat(turned, dim=-1))
