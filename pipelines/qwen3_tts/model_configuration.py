"""The configuration as transformers and vLLM read it, for the Talker's engine core."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig, PretrainedConfig

from pipelines.qwen3_tts.configuration import MODEL_TYPE, RESERVED


class Qwen3TTSPredictorConfig(PretrainedConfig):
    """Sizes of the code predictor: a small transformer over the codebooks of one frame."""

    model_type = "qwen3_tts_talker_code_predictor"

    def __init__(
        self,
        vocab_size: int = 2048,
        hidden_size: int = 1024,
        intermediate_size: int = 3072,
        num_hidden_layers: int = 5,
        num_attention_heads: int = 16,
        num_key_value_heads: int = 8,
        head_dim: int = 128,
        rms_norm_eps: float = 1e-6,
        rope_theta: float = 10_000.0,
        num_code_groups: int = 32,
        **others: Any,
    ) -> None:
        """Keeps the sizes; what it does not know goes to the base class."""
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.head_dim = head_dim
        self.rms_norm_eps = rms_norm_eps
        self.rope_theta = rope_theta
        self.num_code_groups = num_code_groups
        others.pop("rope_scaling", None)
        others["rope_parameters"] = {"rope_type": "default", "rope_theta": rope_theta}
        super().__init__(**others)


class Qwen3TTSTalkerConfig(PretrainedConfig):
    """Sizes of the Talker, in the names that vLLM's Qwen3 backbone reads.

    The checkpoints ask for rotary positions in three rows (mrope). The reference gives every row
    the same positions, for which that is plain rotary embedding, whatever the sections.
    """

    model_type = "qwen3_tts_talker"

    def __init__(
        self,
        code_predictor_config: dict[str, Any] | Qwen3TTSPredictorConfig | None = None,
        vocab_size: int = 3072,
        hidden_size: int = 1024,
        intermediate_size: int = 2048,
        num_hidden_layers: int = 20,
        num_attention_heads: int = 16,
        num_key_value_heads: int = 2,
        head_dim: int | None = None,
        hidden_act: str = "silu",
        max_position_embeddings: int = 32768,
        rms_norm_eps: float = 1e-6,
        rope_theta: float = 10_000.0,
        attention_bias: bool = False,
        use_sliding_window: bool = False,
        num_code_groups: int = 32,
        text_hidden_size: int = 2048,
        text_vocab_size: int = 151_936,
        codec_eos_token_id: int = 2150,
        codec_bos_id: int = 2149,
        **others: Any,
    ) -> None:
        """Keeps the sizes; what it does not know goes to the base class."""
        if attention_bias or use_sliding_window:
            raise ValueError(
                "talker_config: attention_bias and use_sliding_window must be false; other "
                "checkpoints than those are not supported."
            )
        if isinstance(code_predictor_config, Qwen3TTSPredictorConfig):
            self.code_predictor_config = code_predictor_config
        else:
            self.code_predictor_config = Qwen3TTSPredictorConfig(**(code_predictor_config or {}))
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.head_dim = head_dim or hidden_size // num_attention_heads
        self.hidden_act = hidden_act
        self.max_position_embeddings = max_position_embeddings
        self.rms_norm_eps = rms_norm_eps
        self.rope_theta = rope_theta
        self.attention_bias = attention_bias
        self.sliding_window = None
        self.num_code_groups = num_code_groups
        self.text_hidden_size = text_hidden_size
        self.text_vocab_size = text_vocab_size
        self.codec_eos_token_id = codec_eos_token_id
        self.codec_bos_id = codec_bos_id
        self.tie_word_embeddings = False
        for name in ("rope_scaling", "sliding_window", "tie_word_embeddings"):
            others.pop(name, None)
        others["rope_parameters"] = {"rope_type": "default", "rope_theta": rope_theta}
        super().__init__(**others)

    @property
    def suppressed_tokens(self) -> list[int]:
        """Tokens that a step never samples."""
        reserved = range(self.vocab_size - RESERVED, self.vocab_size)
        return [token for token in reserved if token != self.codec_eos_token_id]


class Qwen3TTSConfig(PretrainedConfig):
    """The whole checkpoint's configuration; the Talker's part is its text configuration."""

    model_type = MODEL_TYPE
    sub_configs = {"talker_config": Qwen3TTSTalkerConfig}  # noqa: RUF012 - as transformers has it

    def __init__(
        self,
        talker_config: dict[str, Any] | Qwen3TTSTalkerConfig | None = None,
        tts_model_type: str = "base",
        **others: Any,
    ) -> None:
        """Reads the Talker's part; the rest is kept as it is."""
        if isinstance(talker_config, Qwen3TTSTalkerConfig):
            self.talker_config = talker_config
        else:
            self.talker_config = Qwen3TTSTalkerConfig(**(talker_config or {}))
        self.tts_model_type = tts_model_type
        super().__init__(**others)

    def get_text_config(
        self, decoder: bool | None = None, encoder: bool | None = None
    ) -> Qwen3TTSTalkerConfig:
        """What vLLM sizes its cache by."""
        del decoder, encoder
        return self.talker_config


def register_configuration() -> None:
    """Lets transformers, and so vLLM, read the configuration. Calling twice is harmless."""
    AutoConfig.register(MODEL_TYPE, Qwen3TTSConfig, exist_ok=True)
