"""The weights that a Talker's configuration asks for, by the checkpoint's names."""

from __future__ import annotations

from pathlib import Path

from pipelines.qwen.files import read_json
from pipelines.qwen.weights import FoundWeights, found_weights, require_weights
from pipelines.qwen3_tts.model_configuration import (
    Qwen3TTSConfig,
    Qwen3TTSPredictorConfig,
    Qwen3TTSTalkerConfig,
)

OTHERS = "speaker_encoder."
"""Weights of the same files that another stage loads."""

Shapes = dict[str, tuple[int, ...]]


def check_talker_weights(folder: Path) -> None:
    """Compares a folder's weights with its configuration.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    config = Qwen3TTSConfig(**read_json(folder / "config.json"))
    found = found_weights(folder)
    own = {n: s for n, s in found.shapes.items() if not n.startswith(OTHERS)}
    require_weights(folder, FoundWeights(own, found.quantised), talker_shapes(config.talker_config))


def talker_shapes(config: Qwen3TTSTalkerConfig) -> Shapes:
    """Names and shapes of all weights of Talker and code predictor."""
    hidden, text = config.hidden_size, config.text_hidden_size
    predictor = config.code_predictor_config
    shapes: Shapes = {
        "talker.model.codec_embedding.weight": (config.vocab_size, hidden),
        "talker.model.text_embedding.weight": (config.text_vocab_size, text),
        "talker.text_projection.linear_fc1.weight": (text, text),
        "talker.text_projection.linear_fc1.bias": (text,),
        "talker.text_projection.linear_fc2.weight": (hidden, text),
        "talker.text_projection.linear_fc2.bias": (hidden,),
        "talker.codec_head.weight": (config.vocab_size, hidden),
        **_backbone("talker.model", config),
        **_backbone("talker.code_predictor.model", predictor),
    }
    for index in range(config.num_code_groups - 1):
        embedding = f"talker.code_predictor.model.codec_embedding.{index}.weight"
        shapes[embedding] = (predictor.vocab_size, hidden)
        head = f"talker.code_predictor.lm_head.{index}.weight"
        shapes[head] = (predictor.vocab_size, predictor.hidden_size)
    if predictor.hidden_size != hidden:
        projection = "talker.code_predictor.small_to_mtp_projection"
        shapes[f"{projection}.weight"] = (predictor.hidden_size, hidden)
        shapes[f"{projection}.bias"] = (predictor.hidden_size,)
    return shapes


def _backbone(prefix: str, config: Qwen3TTSTalkerConfig | Qwen3TTSPredictorConfig) -> Shapes:
    hidden, inner, head = config.hidden_size, config.intermediate_size, config.head_dim
    query = config.num_attention_heads * head
    key_value = config.num_key_value_heads * head
    layer: Shapes = {
        "self_attn.q_proj": (query, hidden),
        "self_attn.k_proj": (key_value, hidden),
        "self_attn.v_proj": (key_value, hidden),
        "self_attn.o_proj": (hidden, query),
        "self_attn.q_norm": (head,),
        "self_attn.k_norm": (head,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    shapes: Shapes = {f"{prefix}.norm.weight": (hidden,)}
    for index in range(config.num_hidden_layers):
        for name, shape in layer.items():
            shapes[f"{prefix}.layers.{index}.{name}.weight"] = shape
    return shapes
