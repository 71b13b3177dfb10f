"""The transformer over the codebooks of one frame: pure functions of weights and tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch.nn import functional

from pipelines.qwen.products import Product


class FrameKernels(Protocol):
    """Operations for which there are kernels of vLLM's; each writes into its arguments."""

    def norm(
        self, result: torch.Tensor, values: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        """RMS normalisation of the rows of `values` into `result`, shape [rows, width]."""

    def add_norm(
        self, values: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        """Adds `values` to `residual`, of which it then is the normalisation."""

    def rotate(
        self,
        positions: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        head_dim: int,
        turns: torch.Tensor,
    ) -> None:
        """Rotary embedding (halves turned against each other) of queries and keys.

        Args:
            positions: int64, shape [rows].
            query: Shape [rows, heads * head].
            key: Shape [rows, key-value heads * head].
            head_dim: Width of a head.
            turns: Cosines and sines side by side, shape [positions, head], in the queries' dtype.
        """


class LayerWeights(NamedTuple):
    """A layer's weights at hand: looking them up in modules costs as much as small products."""

    input_norm: torch.Tensor
    qkv: Product
    q_norm: torch.Tensor
    k_norm: torch.Tensor
    output: Product
    post_norm: torch.Tensor
    gate_up: Product
    down: Product


@dataclass(frozen=True, slots=True)
class FrameTransformer:
    """The layers over the positions of one frame, with a small dense cache.

    Attributes:
        kernels: What computes norms and rotations.
        layers: The layers' weights.
        norm: The last norm's weight.
        turns: Cosines and sines of all positions side by side, shape [positions, head].
        heads: Heads of queries.
        groups: Heads of keys and values.
        head_dim: Width of a head.
        epsilon: Of the norms.
    """

    kernels: FrameKernels
    layers: tuple[LayerWeights, ...]
    norm: torch.Tensor
    turns: torch.Tensor
    heads: int
    groups: int
    head_dim: int
    epsilon: float

    def run(self, hidden: torch.Tensor, cache: torch.Tensor, filled: int) -> torch.Tensor:
        """Runs new positions.

        Args:
            hidden: Shape [requests * new positions, hidden], a request's positions together; is
                overwritten.
            cache: Shape [layers, 2, requests, key-value heads, codebooks, head]; gets the new
                positions.
            filled: How many positions the cache held before.

        Returns:
            The last states of the new positions, shape of `hidden`.
        """
        requests = cache.shape[2]
        new = len(hidden) // requests
        positions = torch.arange(filled, filled + new, device=hidden.device)
        if requests > 1:
            positions = positions.repeat(requests)
        residual = hidden
        hidden = torch.empty_like(residual)
        self.kernels.norm(hidden, residual, self.layers[0].input_norm, self.epsilon)
        for index, (weights, part) in enumerate(zip(self.layers, cache, strict=True)):
            if index:
                self.kernels.add_norm(hidden, residual, weights.input_norm, self.epsilon)
            attended = self._attend(hidden, weights, positions, part, filled)
            hidden = weights.output(attended)
            self.kernels.add_norm(hidden, residual, weights.post_norm, self.epsilon)
            gate, up = weights.gate_up(hidden).chunk(2, dim=-1)
            hidden = weights.down(functional.silu(gate) * up)
        self.kernels.add_norm(hidden, residual, self.norm, self.epsilon)
        return hidden

    def _attend(
        self,
        hidden: torch.Tensor,
        weights: LayerWeights,
        positions: torch.Tensor,
        cache: torch.Tensor,
        filled: int,
    ) -> torch.Tensor:
        """Attention to everything so far, shape [rows, heads * head]."""
        requests, head = cache.shape[1], self.head_dim
        query_size, key_value_size = self.heads * head, self.groups * head
        projected = weights.qkv(hidden)
        query = projected.new_empty(len(hidden), query_size)
        key = projected.new_empty(len(hidden), key_value_size)
        split = projected.split([query_size, key_value_size, key_value_size], dim=-1)
        kernels, epsilon = self.kernels, self.epsilon
        kernels.norm(query.view(-1, head), split[0].reshape(-1, head), weights.q_norm, epsilon)
        kernels.norm(key.view(-1, head), split[1].reshape(-1, head), weights.k_norm, epsilon)
        kernels.rotate(positions, query, key, head, self.turns)
        new = len(hidden) // requests
        stop, share = filled + new, self.heads // self.groups
        keys, values = cache[0, :, :, :stop], cache[1, :, :, :stop]
        shape = (requests, new, self.groups, head)
        keys[:, :, filled:].copy_(key.view(shape).transpose(1, 2))
        values[:, :, filled:].copy_(split[2].reshape(shape).transpose(1, 2))
        # The heads of a group are queries of one attention over the group's keys.
        if new == 1:
            query = query.view(requests, self.groups, share, head)
            attended = functional.scaled_dot_product_attention(query, keys, values)
            return attended.reshape(requests, query_size)
        query = query.view(requests, new, self.groups, share, head).transpose(1, 2)
        seen = torch.ones(new, stop, dtype=torch.bool, device=hidden.device).tril(filled)
        attended = functional.scaled_dot_product_attention(
            query.reshape(requests, self.groups, new * share, head),
            keys,
            values,
            attn_mask=seen.repeat_interleave(share, dim=0),
        )
        attended = attended.view(requests, self.groups, new, share, head)
        return attended.transpose(1, 2).reshape(-1, query_size)
