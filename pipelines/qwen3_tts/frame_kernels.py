"""vLLM's kernels for the transformer over a frame's codebooks."""

from __future__ import annotations

import torch
from vllm import _custom_ops as ops


class VllmKernels:
    """See `pipelines.qwen3_tts.frame_transformer.FrameKernels`."""

    def norm(
        self, result: torch.Tensor, values: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        """RMS normalisation of rows."""
        ops.rms_norm(result, values, weight, epsilon)

    def add_norm(
        self, values: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        """RMS normalisation of a sum, which is kept."""
        ops.fused_add_rms_norm(values, residual, weight, epsilon)

    def rotate(
        self,
        positions: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        head_dim: int,
        turns: torch.Tensor,
    ) -> None:
        """Rotary embedding."""
        ops.rotary_embedding(positions, query, key, head_dim, turns, is_neox=True)
