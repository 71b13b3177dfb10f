"""The code predictor: completes a frame's codebooks inside the Talker's step.

A small Qwen3-style transformer runs over the codebooks of one frame. Its sequence is the Talker's
last state, then the embeddings of the codes so far; position *i* gives the logits of codebook *i*.
It has as many positions as there are codebooks, so that its cache is a small dense tensor.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn import functional
from vllm.model_executor.layers.activation import SiluAndMul
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from vllm.model_executor.layers.rotary_embedding import get_rope

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


class PredictorAttention(nn.Module):
    """Grouped-query attention with QK-norm over a dense cache of one frame."""

    def __init__(self, config: Qwen3TTSPredictorConfig, prefix: str) -> None:
        """Builds the projections of one layer."""
        super().__init__()
        self.head_dim = config.head_dim
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.query_size = self.heads * self.head_dim
        self.key_value_size = self.groups * self.head_dim
        self.qkv_proj = QKVParallelLinear(
            config.hidden_size,
            config.head_dim,
            config.num_attention_heads,
            config.num_key_value_heads,
            bias=False,
            prefix=f"{prefix}.qkv_proj",
        )
        self.o_proj = RowParallelLinear(
            self.query_size, config.hidden_size, bias=False, prefix=f"{prefix}.o_proj"
        )
        self.q_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps)
        self.rotary_emb = get_rope(
            config.head_dim,
            max_position=config.num_code_groups + 1,
            rope_parameters=config.rope_parameters,
        )

    def forward(
        self, hidden: torch.Tensor, positions: torch.Tensor, cache: torch.Tensor, filled: int
    ) -> torch.Tensor:
        """Attends to everything so far.

        Args:
            hidden: Shape [requests * new positions, hidden], a request's positions together.
            positions: Of the rows of `hidden`, from 0.
            cache: Shape [2, requests, key-value heads, codebooks, head]; gets the new positions.
            filled: How many positions the cache held before.

        Returns:
            Shape of `hidden`.
        """
        requests = cache.shape[1]
        new = len(hidden) // requests
        projected, _ = self.qkv_proj(hidden)
        query, key, value = projected.split(
            [self.query_size, self.key_value_size, self.key_value_size], dim=-1
        )
        query = self.q_norm(query.reshape(-1, self.head_dim)).view(-1, self.query_size)
        key = self.k_norm(key.reshape(-1, self.head_dim)).view(-1, self.key_value_size)
        query, key = self.rotary_emb(positions, query, key)
        stop = filled + new
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
        output, _ = self.o_proj(attended.transpose(1, 2).reshape(-1, self.query_size))
        return output


class PredictorMLP(nn.Module):
    """SwiGLU feed-forward."""

    def __init__(self, config: Qwen3TTSPredictorConfig, prefix: str) -> None:
        """Builds the two projections."""
        super().__init__()
        self.gate_up_proj = MergedColumnParallelLinear(
            config.hidden_size,
            [config.intermediate_size] * 2,
            bias=False,
            prefix=f"{prefix}.gate_up_proj",
        )
        self.down_proj = RowParallelLinear(
            config.intermediate_size, config.hidden_size, bias=False, prefix=f"{prefix}.down_proj"
        )
        self.act_fn = SiluAndMul()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Shape [rows, hidden] in and out."""
        gate_up, _ = self.gate_up_proj(hidden)
        output, _ = self.down_proj(self.act_fn(gate_up))
        return output


class PredictorLayer(nn.Module):
    """One pre-norm transformer layer with fused residual additions."""

    def __init__(self, config: Qwen3TTSPredictorConfig, prefix: str) -> None:
        """Builds attention, feed-forward and their norms."""
        super().__init__()
        self.self_attn = PredictorAttention(config, f"{prefix}.self_attn")
        self.mlp = PredictorMLP(config, f"{prefix}.mlp")
        self.input_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self,
        hidden: torch.Tensor,
        residual: torch.Tensor | None,
        positions: torch.Tensor,
        cache: torch.Tensor,
        filled: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `PredictorAttention.forward`; returns the output and the residual stream."""
        if residual is None:
            residual = hidden
            hidden = self.input_layernorm(hidden)
        else:
            hidden, residual = self.input_layernorm(hidden, residual)
        hidden = self.self_attn(hidden, positions, cache, filled)
        hidden, residual = self.post_attention_layernorm(hidden, residual)
        return self.mlp(hidden), residual


class CodePredictor(nn.Module):
    """The transformer with an embedding and a head for each residual codebook."""

    def __init__(
        self, config: Qwen3TTSPredictorConfig, talker_hidden_size: int, prefix: str
    ) -> None:
        """Builds it for a Talker of that width."""
        super().__init__()
        self.config = config
        residual = config.num_code_groups - 1
        self.codec_embedding = TableStack(residual, config.vocab_size, talker_hidden_size)
        self.lm_head = TableStack(residual, config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            PredictorLayer(config, f"{prefix}.layers.{index}")
            for index in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.small_to_mtp_projection: nn.Module = nn.Identity()
        if config.hidden_size != talker_hidden_size:
            self.small_to_mtp_projection = nn.Linear(talker_hidden_size, config.hidden_size)
        offsets = torch.arange(residual) * config.vocab_size
        self.register_buffer("offsets", offsets, persistent=False)

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
            hidden, residual = layer(hidden, residual, positions, part, filled)
        hidden, _ = self.norm(hidden, residual)
        return hidden.view(requests, new, -1)[:, -1]
