"""The Talker's configuration, as `config.json` holds it and vLLM reads it."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig, PretrainedConfig

MODEL_TYPE = "lark_talker"


class LarkTalkerConfig(PretrainedConfig):
    """Sizes of the Talker.

    Attributes:
        phoneme_vocabulary: Number of phoneme symbols, 0 being silence.
        lookahead: How many coming phonemes a step sees.
        codebook_sizes: Entries of each codebook, durations first.
        predictor_hidden_size: Width of the code predictor's hidden layers.
        num_voices: Rows of the voice embedding.
        sliding_window: How many positions attention reaches back, this one included.
    """

    model_type = MODEL_TYPE

    def __init__(
        self,
        hidden_size: int = 256,
        num_hidden_layers: int = 4,
        num_attention_heads: int = 4,
        num_key_value_heads: int = 2,
        head_dim: int = 64,
        intermediate_size: int = 640,
        rms_norm_eps: float = 1e-6,
        rope_theta: float = 10000.0,
        sliding_window: int = 128,
        max_position_embeddings: int = 131072,
        vocab_size: int = 64,
        begin_token: int = 32,
        phoneme_vocabulary: int = 178,
        lookahead: int = 4,
        codebook_sizes: tuple[int, ...] = (32, 512, 256, 512, 512),
        predictor_hidden_size: int = 512,
        num_voices: int = 8,
        **others: Any,
    ) -> None:
        """Keeps the sizes; what it does not know goes to the base class."""
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.head_dim = head_dim
        self.intermediate_size = intermediate_size
        self.rms_norm_eps = rms_norm_eps
        self.rope_theta = rope_theta
        self.rope_parameters = {"rope_type": "default", "rope_theta": rope_theta}
        self.sliding_window = sliding_window
        self.layer_types = ["sliding_attention"] * num_hidden_layers
        self.max_position_embeddings = max_position_embeddings
        self.vocab_size = vocab_size
        self.begin_token = begin_token
        self.phoneme_vocabulary = phoneme_vocabulary
        self.lookahead = lookahead
        self.codebook_sizes = tuple(codebook_sizes)
        self.predictor_hidden_size = predictor_hidden_size
        self.num_voices = num_voices
        self.tie_word_embeddings = False
        super().__init__(**others)


def register_configuration() -> None:
    """Lets transformers, and so vLLM, read the configuration. Calling twice is harmless."""
    AutoConfig.register(MODEL_TYPE, LarkTalkerConfig, exist_ok=True)
