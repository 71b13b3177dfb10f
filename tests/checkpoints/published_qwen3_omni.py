"""What the configurations of Qwen3-Omni say; see `published`."""

from __future__ import annotations

from tests.checkpoints.published import CODE_PREDICTOR, DUMPED, Config

QWEN3_OMNI_SPEAKERS = {"chelsie": 2301, "ethan": 2302, "aiden": 2303}


def _rotary(*sections: int, **others: bool) -> Config:
    return {"mrope_section": list(sections), "rope_type": "default", "type": "default", **others}


def _text(**sizes: object) -> Config:
    return {
        **DUMPED,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_cache": True,
        "use_sliding_window": False,
        **sizes,
    }


def _experts(**sizes: object) -> Config:
    return {
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "num_experts": 128,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
        **sizes,
    }


QWEN3_OMNI_TOKENS = {
    "audio_end_token_id": 151670,
    "audio_start_token_id": 151669,
    "audio_token_id": 151675,
    "image_token_id": 151655,
    "position_id_per_seconds": 13,
    "seconds_per_chunk": 2,
    "video_token_id": 151656,
    "vision_start_token_id": 151652,
}

QWEN3_OMNI_THINKER: Config = {
    **QWEN3_OMNI_TOKENS,
    "audio_config": {
        **DUMPED,
        "activation_dropout": 0,
        "activation_function": "gelu",
        "attention_dropout": 0,
        "conv_chunksize": 500,
        "d_model": 1280,
        "downsample_hidden_size": 480,
        "dropout": 0,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "encoder_layers": 32,
        "initializer_range": 0.02,
        "max_source_positions": 1500,
        "model_type": "qwen3_omni_moe_audio_encoder",
        "n_window": 50,
        "n_window_infer": 800,
        "num_hidden_layers": 32,
        "num_mel_bins": 128,
        "output_dim": 2048,
        "scale_embedding": False,
    },
    "dtype": "bfloat16",
    "initializer_range": 0.02,
    "model_type": "qwen3_omni_moe_thinker",
    "text_config": _text(
        **_experts(
            moe_intermediate_size=768, num_experts_per_tok=8, shared_expert_intermediate_size=0
        ),
        head_dim=128,
        hidden_size=2048,
        intermediate_size=768,
        max_position_embeddings=65536,
        model_type="qwen3_omni_moe_text",
        num_attention_heads=32,
        num_hidden_layers=48,
        num_key_value_heads=4,
        rope_scaling=_rotary(24, 20, 20, interleaved=True, mrope_interleaved=True),
        use_qk_norm=True,
        vocab_size=152064,
    ),
    "user_token_id": 872,
    "vision_config": {
        **DUMPED,
        "apply_vit_abs_pos_embed": True,
        "deepstack_visual_indexes": [8, 16, 24],
        "depth": 27,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 1152,
        "image_size": 768,
        "in_channels": 3,
        "in_chans": 3,
        "initializer_range": 0.02,
        "intermediate_size": 4304,
        "model_type": "qwen3_omni_moe_vision_encoder",
        "num_heads": 16,
        "num_position_embeddings": 2304,
        "out_hidden_size": 2048,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "spatial_patch_size": 16,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
    },
    "vision_end_token_id": 151653,
}

QWEN3_OMNI_TALKER: Config = {
    **QWEN3_OMNI_TOKENS,
    "accept_hidden_layer": 24,
    "code_predictor_config": CODE_PREDICTOR
    | {"model_type": "qwen3_omni_moe_talker_code_predictor", "max_position_embeddings": 32768},
    "codec_bos_id": 2149,
    "codec_eos_token_id": 2150,
    "codec_nothink_id": 2155,
    "codec_pad_id": 2148,
    "codec_think_bos_id": 2156,
    "codec_think_eos_id": 2157,
    "model_type": "",
    "num_code_groups": 16,
    "output_router_logits": False,
    "spatial_merge_size": 2,
    "speaker_id": QWEN3_OMNI_SPEAKERS,
    "text_config": _text(
        **_experts(
            moe_intermediate_size=384, num_experts_per_tok=6, shared_expert_intermediate_size=768
        ),
        head_dim=128,
        hidden_size=1024,
        intermediate_size=2048,
        max_position_embeddings=65536,
        model_type="qwen3_omni_moe_talker_text",
        num_attention_heads=16,
        num_hidden_layers=20,
        num_key_value_heads=2,
        rope_scaling=_rotary(24, 20, 20, interleaved=True),
        vocab_size=3072,
    ),
    "thinker_hidden_size": 2048,
}

QWEN3_OMNI: Config = {
    "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
    "assistant_token_id": 77091,
    "code2wav_config": {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "codebook_dim": 512,
        "codebook_size": 2048,
        "decoder_dim": 1536,
        "hidden_act": "silu",
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "model_type": "",
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
    "dtype": "bfloat16",
    "enable_audio_output": True,
    "im_end_token_id": 151645,
    "im_start_token_id": 151644,
    "model_type": "qwen3_omni_moe",
    "system_token_id": 8948,
    "talker_config": QWEN3_OMNI_TALKER,
    "thinker_config": QWEN3_OMNI_THINKER,
    "transformers_version": "4.57.0.dev0",
    "tts_bos_token_id": 151672,
    "tts_eos_token_id": 151673,
    "tts_pad_token_id": 151671,
    "user_token_id": 872,
}
"""`config.json` of Qwen3-Omni-30B-A3B-Instruct."""
