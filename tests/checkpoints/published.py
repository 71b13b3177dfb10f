"""What the configurations of the published checkpoints say: facts, for tests without weights.

They were written by several versions of transformers, older than the installed one: rotary
parameters stand under `rope_scaling`, and parts carry every default of their time (`DUMPED`).
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

DUMPED: Config = {
    "_name_or_path": "",
    "architectures": None,
    "bos_token_id": None,
    "chunk_size_feed_forward": 0,
    "do_sample": False,
    "eos_token_id": None,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "max_length": 20,
    "min_length": 0,
    "num_beams": 1,
    "output_attentions": False,
    "output_hidden_states": False,
    "pad_token_id": None,
    "pruned_heads": {},
    "repetition_penalty": 1.0,
    "return_dict": True,
    "temperature": 1.0,
    "tie_encoder_decoder": False,
    "tokenizer_class": None,
    "top_k": 50,
    "top_p": 1.0,
    "torchscript": False,
    "use_bfloat16": False,
}
"""What older versions of transformers wrote into the configuration of a part."""


def _rotary(*sections: int, **others: bool) -> Config:
    return {"mrope_section": list(sections), "rope_type": "default", "type": "default", **others}


CODE_PREDICTOR: Config = {
    **DUMPED,
    "attention_bias": False,
    "attention_dropout": 0,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_types": ["full_attention"] * 5,
    "max_position_embeddings": 65536,
    "max_window_layers": 28,
    "num_attention_heads": 16,
    "num_code_groups": 16,
    "num_hidden_layers": 5,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 2048,
}
"""Qwen3-TTS and Qwen3-Omni have the same one."""

LANGUAGES = {
    "chinese": 2055,
    "english": 2050,
    "german": 2053,
    "italian": 2070,
    "portuguese": 2071,
    "spanish": 2054,
    "japanese": 2058,
    "korean": 2064,
    "french": 2061,
    "russian": 2069,
}
DIALECTS = {"beijing_dialect": 2074, "sichuan_dialect": 2062}
SPEAKERS = {
    "serena": 3066,
    "vivian": 3065,
    "uncle_fu": 3010,
    "ryan": 3061,
    "aiden": 2861,
    "ono_anna": 2873,
    "sohee": 2864,
    "eric": 2875,
    "dylan": 2878,
}


def qwen3_tts(variant: str, size: str) -> Config:
    """`config.json` of Qwen3-TTS-12Hz, of a variant in a size (`1b7` or `0b6`)."""
    custom = variant == "custom_voice"
    hidden, inner = {"1b7": (2048, 6144), "0b6": (1024, 3072)}[size]
    talker = {
        "attention_bias": False,
        "attention_dropout": 0,
        "code_predictor_config": CODE_PREDICTOR | {"model_type": "qwen3_tts_talker_code_predictor"},
        "codec_bos_id": 2149,
        "codec_eos_token_id": 2150,
        "codec_language_id": LANGUAGES | (DIALECTS if custom else {}),
        "codec_nothink_id": 2155,
        "codec_pad_id": 2148,
        "codec_think_bos_id": 2156,
        "codec_think_eos_id": 2157,
        "codec_think_id": 2154,
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.02,
        "intermediate_size": inner,
        "max_position_embeddings": 32768,
        "model_type": "qwen3_tts_talker",
        "num_attention_heads": 16,
        "num_code_groups": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 8,
        "position_id_per_seconds": 13,
        "rms_norm_eps": 1e-06,
        "rope_scaling": _rotary(24, 20, 20, interleaved=True),
        "rope_theta": 1000000,
        "sliding_window": None,
        "spk_id": SPEAKERS if custom else {},
        "spk_is_dialect": {},
        "text_hidden_size": 2048,
        "text_vocab_size": 151936,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": 3072,
    }
    if custom:
        spoken = {"eric": "sichuan_dialect", "dylan": "beijing_dialect"}
        talker["spk_is_dialect"] = {name: spoken.get(name, False) for name in SPEAKERS}
    config = {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "assistant_token_id": 77091,
        "im_end_token_id": 151645,
        "im_start_token_id": 151644,
        "model_type": "qwen3_tts",
        "talker_config": talker,
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "transformers_version": "4.57.3",
        "tts_bos_token_id": 151672,
        "tts_eos_token_id": 151673,
        "tts_model_size": size,
        "tts_model_type": variant,
        "tts_pad_token_id": 151671,
    }
    if variant == "base":
        config["speaker_encoder_config"] = {"enc_dim": hidden, "sample_rate": 24000}
    return config


QWEN3_TTS_GENERATION: Config = {
    "do_sample": True,
    "repetition_penalty": 1.05,
    "temperature": 0.9,
    "top_p": 1.0,
    "top_k": 50,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_p": 1.0,
    "subtalker_top_k": 50,
    "max_new_tokens": 8192,
}

QWEN3_TTS_CODEC: Config = {
    "architectures": ["Qwen3TTSTokenizerV2Model"],
    "model_type": "qwen3_tts_tokenizer_12hz",
    "encoder_valid_num_quantizers": 16,
    "input_sample_rate": 24000,
    "output_sample_rate": 24000,
    "decode_upsample_rate": 1920,
    "encode_downsample_rate": 1920,
    "transformers_version": "4.57.3",
    "decoder_config": {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "latent_dim": 1024,
        "codebook_dim": 512,
        "codebook_size": 2048,
        "decoder_dim": 1536,
        "hidden_act": "silu",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "head_dim": 64,
        "num_attention_heads": 16,
        "num_hidden_layers": 8,
        "num_key_value_heads": 16,
        "num_quantizers": 16,
        "num_semantic_quantizers": 1,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000,
        "semantic_codebook_size": 4096,
        "sliding_window": 72,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
        "vector_quantization_hidden_dimension": 512,
    },
    "encoder_config": {
        "_frame_rate": 12.5,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "audio_channels": 1,
        "codebook_dim": 256,
        "codebook_size": 2048,
        "compress": 2,
        "dilation_growth_rate": 2,
        "head_dim": 64,
        "hidden_act": "gelu",
        "hidden_size": 512,
        "initializer_range": 0.02,
        "intermediate_size": 2048,
        "kernel_size": 7,
        "last_kernel_size": 3,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "norm_eps": 1e-05,
        "normalize": False,
        "num_attention_heads": 8,
        "num_filters": 64,
        "num_hidden_layers": 8,
        "num_key_value_heads": 8,
        "num_quantizers": 32,
        "num_residual_layers": 1,
        "num_semantic_quantizers": 1,
        "pad_mode": "constant",
        "residual_kernel_size": 3,
        "rope_theta": 10000.0,
        "sampling_rate": 24000,
        "sliding_window": 250,
        "transformers_version": "4.57.0.dev0",
        "trim_right_ratio": 1.0,
        "upsample_groups": 512,
        "upsampling_ratios": [8, 6, 5, 4],
        "use_cache": False,
        "use_causal_conv": True,
        "use_conv_shortcut": False,
        "use_streaming": False,
        "vector_quantization_hidden_dimension": 256,
    },
}
"""`speech_tokenizer/config.json`, which is the same in all of them."""
