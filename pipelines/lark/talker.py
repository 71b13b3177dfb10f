"""The Talker: a codec language model that speaks one phoneme a step, on vLLM's layers.

Step t reads phoneme t, the phonemes that follow it (its look-ahead) and all codes of step t-1. The
backbone is Qwen3-style with sliding-window attention in every layer, so that the cost and the
behaviour of a step do not depend on how much was spoken before. The sampled token is the
phoneme's duration; the code predictor completes the other codebooks in the same step.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.config import CacheConfig, VllmConfig
from vllm.model_executor.layers.activation import SiluAndMul
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.rotary_embedding import get_rope
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.models.utils import AutoWeightsLoader, WeightsMapper, maybe_prefix
from vllm.sequence import IntermediateTensors

from engine.code_choice import CodeChoice
from engine.conditioned_model import StepInputs
from pipelines.lark.configuration import LarkTalkerConfig
from pipelines.lark.steps import LarkCodePredictor, LarkStepEmbedding

CHECKPOINT_NAMES = WeightsMapper(
    orig_to_new_stacked={
        ".q_proj": (".qkv_proj", "q"),
        ".k_proj": (".qkv_proj", "k"),
        ".v_proj": (".qkv_proj", "v"),
        ".gate_proj": (".gate_up_proj", 0),
        ".up_proj": (".gate_up_proj", 1),
    },
    orig_to_new_prefix={
        f"model.{name}_embedding": f"embedding.{name}_embedding"
        for name in ("phoneme", "lookahead", "voice", "code")
    },
)
"""From the checkpoint's names to the modules', projections fused as vLLM wants them."""


def talker_config(vllm_config: VllmConfig) -> LarkTalkerConfig:
    """The Talker's own configuration.

    Raises:
        TypeError: The checkpoint is another model's.
    """
    config = vllm_config.model_config.hf_config
    if not isinstance(config, LarkTalkerConfig):
        raise TypeError(f"The configuration is a {type(config).__name__}, not LarkTalkerConfig.")
    return config


class LarkAttention(nn.Module):
    """Grouped-query attention with QK-norm and a sliding window."""

    def __init__(
        self, config: LarkTalkerConfig, cache_config: CacheConfig | None, prefix: str
    ) -> None:
        """Builds the projections and the paged attention of one layer."""
        super().__init__()
        self.head_dim = config.head_dim
        self.query_size = config.num_attention_heads * config.head_dim
        self.key_value_size = config.num_key_value_heads * config.head_dim
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
        self.rotary_emb = get_rope(
            config.head_dim,
            max_position=config.max_position_embeddings,
            rope_parameters=config.rope_parameters,
        )
        self.attn = Attention(
            config.num_attention_heads,
            config.head_dim,
            config.head_dim**-0.5,
            num_kv_heads=config.num_key_value_heads,
            cache_config=cache_config,
            per_layer_sliding_window=config.sliding_window,
            prefix=f"{prefix}.attn",
        )
        self.q_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, eps=config.rms_norm_eps)

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        """Shapes: positions [steps], hidden_states [steps, hidden]; returns the latter's."""
        projected, _ = self.qkv_proj(hidden_states)
        query, key, value = projected.split(
            [self.query_size, self.key_value_size, self.key_value_size], dim=-1
        )
        query = self.q_norm(query.reshape(-1, self.head_dim)).view(query.shape)
        key = self.k_norm(key.reshape(-1, self.head_dim)).view(key.shape)
        query, key = self.rotary_emb(positions, query, key)
        output, _ = self.o_proj(self.attn(query, key, value))
        return output


class LarkMLP(nn.Module):
    """SwiGLU feed-forward."""

    def __init__(self, config: LarkTalkerConfig, prefix: str) -> None:
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

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Shape [steps, hidden] in and out."""
        gate_up, _ = self.gate_up_proj(hidden_states)
        output, _ = self.down_proj(self.act_fn(gate_up))
        return output


class LarkLayer(nn.Module):
    """One pre-norm transformer layer with fused residual additions."""

    def __init__(
        self, config: LarkTalkerConfig, cache_config: CacheConfig | None, prefix: str
    ) -> None:
        """Builds attention, feed-forward and their norms."""
        super().__init__()
        self.self_attn = LarkAttention(config, cache_config, f"{prefix}.self_attn")
        self.mlp = LarkMLP(config, f"{prefix}.mlp")
        self.input_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self,
        positions: torch.Tensor,
        hidden_states: torch.Tensor,
        residual: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Shapes [steps, hidden]; returns the layer's output and the residual stream."""
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self.self_attn(positions, hidden_states)
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        return self.mlp(hidden_states), residual


@support_torch_compile(dynamic_arg_dims={"positions": 0, "inputs_embeds": 0})
class LarkBackbone(nn.Module):
    """The transformer over conditioned step embeddings."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        """Builds the layers from the configuration in `vllm_config`."""
        super().__init__()
        config = talker_config(vllm_config)
        self.layers = nn.ModuleList(
            LarkLayer(config, vllm_config.cache_config, f"{prefix}.layers.{index}")
            for index in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Last layer's states, shape [steps, hidden], from `inputs_embeds` of that shape."""
        if inputs_embeds is None:
            raise ValueError("Every step of this model is conditioned: inputs_embeds is needed.")
        hidden_states, residual = inputs_embeds, None
        for layer in self.layers:
            hidden_states, residual = layer(positions, hidden_states, residual)
        hidden_states, _ = self.norm(hidden_states, residual)
        return hidden_states


class LarkTalker(nn.Module):
    """The Talker as vLLM and the conditioned runner drive it."""

    allow_patterns_overrides = ["talker.safetensors"]  # noqa: RUF012 - read by vLLM's loader
    row_dtype = np.dtype(np.int64)
    vector_width = 0
    residual_codes = 0
    end_token: int | None = None

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        """Builds the model for `vllm_config.model_config.hf_config`."""
        super().__init__()
        config = talker_config(vllm_config)
        self.config = config
        self.row_width = 2 + config.lookahead
        self.codebooks = len(config.codebook_sizes)
        self.begin_token = config.begin_token
        self.durations = config.codebook_sizes[0]
        self.embedding = LarkStepEmbedding(config)
        self.model = LarkBackbone(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        self.predictor = LarkCodePredictor(config)
        self.lm_head = ParallelLMHead(
            config.vocab_size, config.hidden_size, prefix=maybe_prefix(prefix, "lm_head")
        )
        self.logits_processor = LogitsProcessor(config.vocab_size)

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Token embeddings alone; the runner replaces them by `embed_step`."""
        return self.embedding.code_embedding[0](input_ids)

    def embed_step(self, inputs: StepInputs) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.embed_step`."""
        return self.embedding(inputs.rows, inputs.previous_codes)

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.predict_codes`."""
        del choice  # the most probable codes, at any temperature
        return self.predictor(hidden_states, tokens)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Last layer's states, shape [steps, hidden]."""
        return self.model(input_ids, positions, intermediate_tensors, inputs_embeds)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Duration logits, shape [requests, vocabulary]; what is no duration cannot win."""
        logits = self.logits_processor(self.lm_head, hidden_states)
        if logits is not None:
            logits[:, self.durations :] = -torch.inf
        return logits

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Loads `talker.safetensors`; what the checkpoint lacks is vLLM's error to raise."""
        loaded = AutoWeightsLoader(self).load_weights(weights, mapper=CHECKPOINT_NAMES)
        self.embedding.join()
        self.predictor.join()
        return loaded
