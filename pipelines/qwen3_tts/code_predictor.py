"""The code predictor: completes a frame's codebooks inside the Talker's step.

A small Qwen3-style transformer runs over the codebooks of one frame. Its sequence is the Talker's
last state, then the embeddings of the codes so far; position *i* gives the logits of codebook *i*.
It has as many positions as there are codebooks, so that its cache is a small dense tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional
from vllm import _custom_ops as ops

from engine.conditioned_model import ChooseCodes
from pipelines.qwen3_tts.model_configuration import Qwen3TTSPredictorConfig


class TableStack(nn.Module):
    """Tables of equal shape, one a codebook, in one tensor of shape [tables, rows, columns]."""

    def __init__(self, tables: int, rows: int, columns: int) -> None:
        """Leaves the values to the loader."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(tables, rows, columns), requires_grad=False)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Takes `0.weight`, `1.weight` and so on.

        Raises:
            ValueError: One of them is missing.
        """
        loaded = set()
        for name, values in weights:
            index = int(name.partition(".")[0])
            self.weight.data[index].copy_(values)
            loaded.add(index)
        if len(loaded) != len(self.weight):
            missing = sorted(set(range(len(self.weight))) - loaded)
            raise ValueError(f"Tables {missing} are missing in the checkpoint.")
        return {"weight"}


class FusedLinear(nn.Module):
    """Several linear maps of one input as one, loaded part by part."""

    def __init__(self, inputs: int, parts: Mapping[str | int, int]) -> None:
        """Takes the parts' outputs, by the names that the weights' mapper gives them."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(sum(parts.values()), inputs), requires_grad=False)
        stops = list(accumulate(parts.values()))
        starts = [stop - size for stop, size in zip(stops, parts.values(), strict=True)]
        self._slices = dict(zip(parts, map(slice, starts, stops), strict=True))
        self.weight.weight_loader = self._load  # type: ignore[attr-defined]

    def _load(self, weight: nn.Parameter, values: torch.Tensor) -> None:
        part = values.shard_id  # type: ignore[attr-defined]  # set by vLLM's weights' mapper
        weight.data[self._slices[part]].copy_(values)


class Norm(nn.Module):
    """Holds the weight of an RMS normalisation."""

    def __init__(self, width: int) -> None:
        """Of rows of that width."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width), requires_grad=False)


class PredictorAttention(nn.Module):
    """Holds the weights of grouped-query attention with QK-norm."""

    def __init__(self, config: Qwen3TTSPredictorConfig) -> None:
        """Builds the projections of one layer."""
        super().__init__()
        query = config.num_attention_heads * config.head_dim
        key_value = config.num_key_value_heads * config.head_dim
        parts: dict[str | int, int] = {"q": query, "k": key_value, "v": key_value}
        self.qkv_proj = FusedLinear(config.hidden_size, parts)
        self.o_proj = nn.Linear(query, config.hidden_size, bias=False)
        self.q_norm, self.k_norm = Norm(config.head_dim), Norm(config.head_dim)


class PredictorMLP(nn.Module):
    """Holds the weights of a SwiGLU feed-forward."""

    def __init__(self, config: Qwen3TTSPredictorConfig) -> None:
        """Builds the two projections."""
        super().__init__()
        inner = config.intermediate_size
        self.gate_up_proj = FusedLinear(config.hidden_size, {0: inner, 1: inner})
        self.down_proj = nn.Linear(inner, config.hidden_size, bias=False)


class PredictorLayer(nn.Module):
    """Holds the weights of one pre-norm transformer layer."""

    def __init__(self, config: Qwen3TTSPredictorConfig) -> None:
        """Builds attention, feed-forward and their norms."""
        super().__init__()
        self.self_attn = PredictorAttention(config)
        self.mlp = PredictorMLP(config)
        self.input_layernorm = Norm(config.hidden_size)
        self.post_attention_layernorm = Norm(config.hidden_size)

    def weights(self) -> LayerWeights:
        """The loaded weights, for computing."""
        attention, mlp = self.self_attn, self.mlp
        return LayerWeights(
            self.input_layernorm.weight,
            quick_to_read(attention.qkv_proj.weight),
            attention.q_norm.weight,
            attention.k_norm.weight,
            quick_to_read(attention.o_proj.weight),
            self.post_attention_layernorm.weight,
            quick_to_read(mlp.gate_up_proj.weight),
            quick_to_read(mlp.down_proj.weight),
        )


def quick_to_read(weight: nn.Parameter) -> nn.Parameter:
    """Lays matrices [..., outputs, inputs] on a processor out input by input.

    That makes a product with a few rows up to twice as fast; shape and values stay.
    """
    if weight.device.type == "cpu":
        weight.data = weight.data.mT.contiguous().mT
    return weight


class LayerWeights(NamedTuple):
    """A layer's weights at hand: looking them up in modules costs as much as small products."""

    input_norm: torch.Tensor
    qkv: torch.Tensor
    q_norm: torch.Tensor
    k_norm: torch.Tensor
    output: torch.Tensor
    post_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class FrameTransformer:
    """The layers over the positions of one frame, with a small dense cache."""

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
        ops.rms_norm(hidden, residual, self.layers[0].input_norm, self.epsilon)
        for index, (weights, part) in enumerate(zip(self.layers, cache, strict=True)):
            if index:
                ops.fused_add_rms_norm(hidden, residual, weights.input_norm, self.epsilon)
            attended = self._attend(hidden, weights, positions, part, filled)
            hidden = functional.linear(attended, weights.output)
            ops.fused_add_rms_norm(hidden, residual, weights.post_norm, self.epsilon)
            gate, up = functional.linear(hidden, weights.gate_up).chunk(2, dim=-1)
            hidden = functional.linear(functional.silu(gate) * up, weights.down)
        ops.fused_add_rms_norm(hidden, residual, self.norm, self.epsilon)
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
        projected = functional.linear(hidden, weights.qkv)
        query = projected.new_empty(len(hidden), query_size)
        key = projected.new_empty(len(hidden), key_value_size)
        split = projected.split([query_size, key_value_size, key_value_size], dim=-1)
        ops.rms_norm(query.view(-1, head), split[0].reshape(-1, head), weights.q_norm, self.epsilon)
        ops.rms_norm(key.view(-1, head), split[1].reshape(-1, head), weights.k_norm, self.epsilon)
        ops.rotary_embedding(positions, query, key, head, self.turns, is_neox=True)
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


class CodePredictor(nn.Module):
    """The transformer with an embedding and a head for each residual codebook."""

    offsets: torch.Tensor
    turns: torch.Tensor

    def __init__(self, config: Qwen3TTSPredictorConfig, talker_hidden_size: int) -> None:
        """Builds it for a Talker of that width."""
        super().__init__()
        self.config = config
        residual = config.num_code_groups - 1
        self.codec_embedding = TableStack(residual, config.vocab_size, talker_hidden_size)
        self.lm_head = TableStack(residual, config.vocab_size, config.hidden_size)
        self._layers = [PredictorLayer(config) for _ in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(self._layers)
        self.norm = Norm(config.hidden_size)
        self._transformer: FrameTransformer | None = None
        self.small_to_mtp_projection: nn.Module = nn.Identity()
        if config.hidden_size != talker_hidden_size:
            self.small_to_mtp_projection = nn.Linear(talker_hidden_size, config.hidden_size)
        offsets = torch.arange(residual) * config.vocab_size
        self.register_buffer("offsets", offsets, persistent=False)
        self.register_buffer("turns", _turns(config), persistent=False)

    def embed_residual(self, codes: torch.Tensor) -> torch.Tensor:
        """Embeddings of codebooks 1 and up, [rows, codebooks - 1] -> [rows, codebooks - 1, H].

        H is the Talker's width. Where a code is negative, the embedding is zero.
        """
        table = self.codec_embedding.weight.flatten(0, 1)
        embedded = functional.embedding(codes.clamp(min=0) + self.offsets, table)
        return embedded * (codes >= 0).unsqueeze(-1)

    def forward(
        self,
        talker_state: torch.Tensor,
        tokens: torch.Tensor,
        embedded: torch.Tensor,
        choose: ChooseCodes,
    ) -> torch.Tensor:
        """All codes of a frame.

        Args:
            talker_state: The Talker's last state, shape [requests, H].
            tokens: The codes of codebook 0, int64, shape [requests].
            embedded: Their embeddings by the Talker, shape [requests, H].
            choose: Chooses the next codebook's codes from its logits.

        Returns:
            int64, shape [requests, codebooks].
        """
        config, requests = self.config, len(tokens)
        cache = talker_state.new_empty(
            len(self.layers),
            2,
            requests,
            config.num_key_value_heads,
            config.num_code_groups,
            config.head_dim,
        )
        transformer = self._transformer_of_weights()
        codes = [tokens]
        inputs = torch.stack([talker_state, embedded], dim=1).flatten(0, 1)
        filled, new = 0, 2
        heads = self.lm_head.weight.unbind()
        for head, table in zip(heads, self.codec_embedding.weight.unbind(), strict=True):
            state = transformer.run(self.small_to_mtp_projection(inputs), cache, filled)
            codes.append(choose(functional.linear(state[new - 1 :: new], head)))
            inputs = functional.embedding(codes[-1], table)
            filled, new = filled + new, 1
        return torch.stack(codes, dim=1)

    def _transformer_of_weights(self) -> FrameTransformer:
        """The layers with their weights, gathered once these are loaded."""
        if self._transformer is None:
            config = self.config
            quick_to_read(self.lm_head.weight)
            self._transformer = FrameTransformer(
                tuple(layer.weights() for layer in self._layers),
                self.norm.weight,
                # vLLM's operator wants them as the states are.
                self.turns.to(self.norm.weight.dtype),
                config.num_attention_heads,
                config.num_key_value_heads,
                config.head_dim,
                config.rms_norm_eps,
            )
        return self._transformer


def _turns(config: Qwen3TTSPredictorConfig) -> torch.Tensor:
    """Cosines and sines of all positions side by side, shape [positions, head]."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    positions = torch.arange(config.num_code_groups + 1, dtype=torch.float32)
    angles = positions[:, None] / config.rope_theta**exponents
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
