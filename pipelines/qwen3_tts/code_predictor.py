"""The code predictor: completes a frame's codebooks inside the Talker's step.

A small Qwen3-style transformer runs over the codebooks of one frame. Its sequence is the Talker's
last state, then the embeddings of the codes so far; position *i* gives the logits of codebook *i*.
It has as many positions as there are codebooks, so that its cache is a small dense tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

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

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shapes: [rows, inputs] -> [rows, outputs of all parts]."""
        return functional.linear(values, self.weight)


class Norm(nn.Module):
    """RMS normalisation by vLLM's kernel, which has less to do for small rows than its layer."""

    def __init__(self, width: int, epsilon: float) -> None:
        """Normalises rows of that width."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width), requires_grad=False)
        self.epsilon = epsilon

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape [rows, width] in and out."""
        normed = torch.empty_like(values)
        ops.rms_norm(normed, values, self.weight, self.epsilon)
        return normed

    def add_(self, values: torch.Tensor, residual: torch.Tensor) -> None:
        """Adds the values to the residual stream, and makes them its normalised rows, in place."""
        ops.fused_add_rms_norm(values, residual, self.weight, self.epsilon)


class PredictorAttention(nn.Module):
    """Grouped-query attention with QK-norm over a dense cache of one frame."""

    def __init__(self, config: Qwen3TTSPredictorConfig) -> None:
        """Builds the projections of one layer."""
        super().__init__()
        self.head_dim = config.head_dim
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.query_size = self.heads * self.head_dim
        self.key_value_size = self.groups * self.head_dim
        sizes: dict[str | int, int] = {
            "q": self.query_size,
            "k": self.key_value_size,
            "v": self.key_value_size,
        }
        self.qkv_proj = FusedLinear(config.hidden_size, sizes)
        self.o_proj = nn.Linear(self.query_size, config.hidden_size, bias=False)
        self.q_norm = Norm(config.head_dim, config.rms_norm_eps)
        self.k_norm = Norm(config.head_dim, config.rms_norm_eps)

    def forward(
        self,
        hidden: torch.Tensor,
        positions: torch.Tensor,
        turns: torch.Tensor,
        cache: torch.Tensor,
        filled: int,
    ) -> torch.Tensor:
        """Attends to everything so far.

        Args:
            hidden: Shape [requests * new positions, hidden], a request's positions together.
            positions: Of the rows of `hidden`, from 0.
            turns: Cosines and sines of all positions, shape [positions, head].
            cache: Shape [2, requests, key-value heads, codebooks, head]; gets the new positions.
            filled: How many positions the cache held before.

        Returns:
            Shape of `hidden`.
        """
        requests = cache.shape[1]
        new, stop = len(hidden) // requests, filled + len(hidden) // requests
        query, key, value = self.qkv_proj(hidden).split(
            [self.query_size, self.key_value_size, self.key_value_size], dim=-1
        )
        query = self.q_norm(query.reshape(-1, self.head_dim)).view(-1, self.query_size)
        key = self.k_norm(key.reshape(-1, self.head_dim)).view(-1, self.key_value_size)
        ops.rotary_embedding(positions, query, key, self.head_dim, turns, is_neox=True)
        shape = (requests, new, self.groups, self.head_dim)
        cache[0, :, :, filled:stop] = key.view(shape).transpose(1, 2)
        cache[1, :, :, filled:stop] = value.reshape(shape).transpose(1, 2)
        # The heads of a group are queries of one attention over the group's keys.
        share = self.heads // self.groups
        query = query.view(requests, new, self.groups, share, self.head_dim).transpose(1, 2)
        mask = None
        if new > 1:
            seen = torch.ones(new, stop, dtype=torch.bool, device=hidden.device).tril(filled)
            mask = seen.repeat_interleave(share, dim=0)
        attended = functional.scaled_dot_product_attention(
            query.reshape(requests, self.groups, new * share, self.head_dim),
            cache[0, :, :, :stop],
            cache[1, :, :, :stop],
            attn_mask=mask,
        )
        attended = attended.view(requests, self.groups, new, share, self.head_dim)
        return self.o_proj(attended.transpose(1, 2).reshape(-1, self.query_size))


class PredictorMLP(nn.Module):
    """SwiGLU feed-forward."""

    def __init__(self, config: Qwen3TTSPredictorConfig) -> None:
        """Builds the two projections."""
        super().__init__()
        self.inner = config.intermediate_size
        self.gate_up_proj = FusedLinear(config.hidden_size, {0: self.inner, 1: self.inner})
        self.down_proj = nn.Linear(self.inner, config.hidden_size, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Shape [rows, hidden] in and out."""
        gate, up = self.gate_up_proj(hidden).chunk(2, dim=-1)
        return self.down_proj(functional.silu(gate) * up)


class PredictorLayer(nn.Module):
    """One pre-norm transformer layer with fused residual additions."""

    def __init__(self, config: Qwen3TTSPredictorConfig) -> None:
        """Builds attention, feed-forward and their norms."""
        super().__init__()
        self.self_attn = PredictorAttention(config)
        self.mlp = PredictorMLP(config)
        self.input_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = Norm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self,
        hidden: torch.Tensor,
        residual: torch.Tensor | None,
        positions: torch.Tensor,
        turns: torch.Tensor,
        cache: torch.Tensor,
        filled: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `PredictorAttention.forward`; returns the output and the residual stream."""
        if residual is None:
            residual = hidden
            hidden = self.input_layernorm(hidden)
        else:
            self.input_layernorm.add_(hidden, residual)
        hidden = self.self_attn(hidden, positions, turns, cache, filled)
        self.post_attention_layernorm.add_(hidden, residual)
        return self.mlp(hidden), residual


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
        self.layers = nn.ModuleList(PredictorLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)
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
        codes = [tokens]
        inputs = torch.stack([talker_state, embedded], dim=1).flatten(0, 1)
        filled, new = 0, 2
        for head, table in zip(self.lm_head.weight, self.codec_embedding.weight, strict=True):
            state = self._run(self.small_to_mtp_projection(inputs), cache, filled, new)
            codes.append(choose(functional.linear(state, head)))
            inputs = functional.embedding(codes[-1], table)
            filled, new = filled + new, 1
        return torch.stack(codes, dim=1)

    def _run(
        self, hidden: torch.Tensor, cache: torch.Tensor, filled: int, new: int
    ) -> torch.Tensor:
        """Last states of the requests' new positions, shape [requests, hidden]."""
        requests = cache.shape[2]
        positions = torch.arange(filled, filled + new, device=hidden.device).repeat(requests)
        residual: torch.Tensor | None = None
        for layer, part in zip(self.layers, cache, strict=True):
            hidden, residual = layer(hidden, residual, positions, self.turns, part, filled)
        if residual is None:
            raise ValueError("A code predictor has at least one layer.")
        self.norm.add_(hidden, residual)
        return hidden.view(requests, new, -1)[:, -1]


def _turns(config: Qwen3TTSPredictorConfig) -> torch.Tensor:
    """Cosines and sines of all positions side by side, shape [positions, head]."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    positions = torch.arange(config.num_code_groups + 1, dtype=torch.float32)
    angles = positions[:, None] / config.rope_theta**exponents
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
