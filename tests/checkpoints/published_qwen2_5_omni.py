"""What the configurations of Qwen2.5-Omni say; see `published`."""

from __future__ import annotations

from dataclasses import dataclass

from tests.checkpoints.published import DUMPED, Config

TOKENS = {
    "audio_end_token_id": 151648,
    "audio_start_token_id": 151647,
    "audio_token_index": 151646,
    "image_token_index": 151655,
    "position_id_per_seconds": 25,
    "seconds_per_chunk": 2,
    "video_token_index": 151656,
    "vision_end_token_id": 151653,
    "vision_start_token_id": 151652,
}

TOKEN2WAV: Config = {
    "bigvgan_config": {
        "mel_dim": 80,
        "model_type": "qwen2_5_omni_bigvgan",
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
        "resblock_kernel_sizes": [3, 7, 11],
        "upsample_initial_channel": 1536,
        "upsample_kernel_sizes": [11, 7, 4, 4, 4, 4],
        "upsample_rates": [5, 3, 2, 2, 2, 2],
        "use_bias_at_final": False,
    },
    "dit_config": {
        "depth": 22,
        "dim": 1024,
        "dropout": 0.1,
        "emb_dim": 512,
        "enc_attention_channels": 64,
        "enc_channels": [256, 256, 256, 256, 768],
        "enc_dilations": [1, 2, 3, 4, 1],
        "enc_dim": 128,
        "enc_emb_dim": 192,
        "enc_global_context": True,
        "enc_kernel_sizes": [5, 3, 3, 3, 1],
        "enc_lin_neurons": 192,
        "enc_res2net_scale": 2,
        "enc_se_channels": 64,
        "ff_mult": 2,
        "head_dim": 64,
        "heads": 16,
        "mel_dim": 80,
        "model_type": "qwen2_5_omni_dit",
        "num_embeds": 8193,
        "repeats": 2,
        "torch_dtype": "float32",
    },
    "model_type": "qwen2_5_omni_token2wav",
}
"""Depth, width and heads stand under names that the reference does not read: it has defaults."""


@dataclass(frozen=True)
class Sizes:
    """In which the two checkpoints differ."""

    thinker_hidden: int
    thinker_inner: int
    thinker_layers: int
    thinker_heads: int
    thinker_groups: int
    vocabulary: int
    window_layers: int
    talker_inner: int
    talker_heads: int
    talker_groups: int
    talker_head: int
    talker_sections: tuple[int, int, int]


QWEN2_5_OMNI_7B = Sizes(3584, 18944, 28, 28, 4, 152064, 28, 18944, 12, 4, 128, (16, 24, 24))
QWEN2_5_OMNI_3B = Sizes(2048, 11008, 36, 16, 2, 151936, 70, 4864, 14, 2, 64, (16, 16, 0))


def qwen2_5_omni(sizes: Sizes) -> Config:
    """`config.json` of Qwen2.5-Omni in a size."""
    return {
        "architectures": ["Qwen2_5OmniModel"],
        "enable_audio_output": True,
        "enable_talker": True,
        "model_type": "qwen2_5_omni",
        "talker_config": _talker(sizes),
        "thinker_config": _thinker(sizes),
        "token2wav_config": TOKEN2WAV,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.50.0.dev0",
    }


def _rotary(sections: tuple[int, int, int]) -> Config:
    return {"mrope_section": list(sections), "rope_type": "default", "type": "default"}


def _layers(**sizes: object) -> Config:
    return {
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "sliding_window": 32768,
        "use_cache": True,
        "use_sliding_window": False,
        **sizes,
    }


def _talker(sizes: Sizes) -> Config:
    return {
        **TOKENS,
        **_layers(
            embedding_size=sizes.thinker_hidden,
            head_dim=sizes.talker_head,
            hidden_size=896,
            intermediate_size=sizes.talker_inner,
            max_window_layers=28,
            num_attention_heads=sizes.talker_heads,
            num_hidden_layers=24,
            num_key_value_heads=sizes.talker_groups,
            rope_scaling=_rotary(sizes.talker_sections),
            vocab_size=8448,
        ),
        "init_std": 0.02,
        "model_type": "qwen2_5_omni_talker",
        "spatial_merge_size": 2,
        "torch_dtype": "bfloat16",
        "tts_codec_end_token_id": 8294,
        "tts_codec_mask_token_id": 8296,
        "tts_codec_pad_token_id": 8292,
        "tts_codec_start_token_id": 8293,
        "tts_text_end_token_id": 151861,
        "tts_text_pad_token_id": 151859,
        "tts_text_start_token_id": 151860,
    }


def _thinker(sizes: Sizes) -> Config:
    return {
        **TOKENS,
        "audio_config": {
            **DUMPED,
            "activation_dropout": 0.0,
            "activation_function": "gelu",
            "attention_dropout": 0.0,
            "d_model": 1280,
            "dropout": 0.0,
            "encoder_attention_heads": 20,
            "encoder_ffn_dim": 5120,
            "encoder_layerdrop": 0.0,
            "encoder_layers": 32,
            "init_std": 0.02,
            "initializer_range": 0.02,
            "max_source_positions": 1500,
            "model_type": "qwen2_5_omni_audio_encoder",
            "n_window": 100,
            "num_hidden_layers": 32,
            "num_mel_bins": 128,
            "output_dim": sizes.thinker_hidden,
            "scale_embedding": False,
        },
        "bos_token_id": 151644,
        "eos_token_id": 151645,
        "ignore_index": -100,
        "init_std": 0.02,
        "model_type": "qwen2_5_omni_thinker",
        "pad_token_id": 151643,
        "text_config": {
            **DUMPED,
            **_layers(
                hidden_size=sizes.thinker_hidden,
                init_std=0.02,
                intermediate_size=sizes.thinker_inner,
                max_window_layers=sizes.window_layers,
                model_type="qwen2_5_omni_text",
                num_attention_heads=sizes.thinker_heads,
                num_hidden_layers=sizes.thinker_layers,
                num_key_value_heads=sizes.thinker_groups,
                rope_scaling=_rotary((16, 24, 24)),
                tie_word_embeddings=False,
                vocab_size=sizes.vocabulary,
            ),
        },
        "user_token_id": 872,
        "vision_config": {
            **DUMPED,
            "depth": 32,
            "embed_dim": 1280,
            "fullatt_block_indexes": [7, 15, 23, 31],
            "hidden_act": "silu",
            "hidden_size": 1280,
            "in_channels": 3,
            "in_chans": 3,
            "init_std": 0.02,
            "initializer_range": 0.02,
            "intermediate_size": 3420,
            "model_type": "qwen2_5_omni_vision_encoder",
            "num_heads": 16,
            "out_hidden_size": sizes.thinker_hidden,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "spatial_patch_size": 14,
            "temporal_patch_size": 2,
            "tokens_per_second": 25,
            "window_size": 112,
        },
        "vision_token_id": 151654,
    }
