"""Modules that hold the code predictor's weights, laid out for computing as they are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

import torch
from torch import nn

from pipelines.qwen.products import product_with
from pipelines.qwen3_tts.frame_transformer import LayerWeights
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
            product_with(attention.qkv_proj.weight),
            attention.q_norm.weight,
            attention.k_norm.weight,
            product_with(attention.o_proj.weight),
            self.post_attention_layernorm.weight,
            product_with(mlp.gate_up_proj.weight),
            product_with(mlp.down_proj.weight),
        )
