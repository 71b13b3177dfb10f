"""A tiny Qwen3-Omni checkpoint: the real architecture, seeded random weights, its own tokenizer.

Made from the reference's own configuration classes (transformers, `qwen3_omni_moe`) and saved as
the published checkpoints are: one folder with the weights of all stages, a tokenizer and the
processor's configuration. As a script:

    python -m tests.checkpoints.qwen3_omni FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Qwen2TokenizerFast,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    Qwen3OmniMoeConfig,
    Qwen3OmniMoeForConditionalGeneration,
    Qwen3OmniMoeProcessor,
    WhisperFeatureExtractor,
)

SPECIAL_TOKENS = {
    "image_token": "<|image_pad|>",
    "audio_token": "<|audio_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
OTHER_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
)

# Renders as the published template does for text, sound and pictures without tools.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\n' }}"
    "{%- if message.content is string -%}{{ message.content }}"
    "{%- else -%}{%- for part in message.content -%}"
    "{%- if part.type == 'audio' -%}{{ '<|audio_start|><|audio_pad|><|audio_end|>' }}"
    "{%- elif part.type == 'image' -%}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- elif part.type == 'text' -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{ '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)

CODE_GROUPS = 4
CODEBOOK = 32
RESERVED = 1024
"""Tokens behind the codes that a step may not sample, but for the one that ends it."""
SPEAKERS = {"ethan": CODEBOOK + 60, "chelsie": CODEBOOK + 61}


def make_tokenizer() -> Qwen2TokenizerFast:
    """A byte-level BPE tokenizer in which the roles are single tokens, as in the real one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["user\n", "assistant\n", "system\n"] * 50, trainer)
    tokenizer.add_special_tokens([*OTHER_TOKENS, *SPECIAL_TOKENS.values()])
    return Qwen2TokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
        bos_token=None,
        extra_special_tokens=SPECIAL_TOKENS,
        chat_template=CHAT_TEMPLATE,
    )


def make_processor() -> Qwen3OmniMoeProcessor:
    """The reference's processor over the tiny tokenizer."""
    pixels = {"size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}}
    return Qwen3OmniMoeProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=16, **pixels),
        video_processor=Qwen2VLVideoProcessor(patch_size=16, **pixels),
        feature_extractor=WhisperFeatureExtractor(feature_size=128),
        tokenizer=make_tokenizer(),
        chat_template=CHAT_TEMPLATE,
    )


def make_config(tokenizer: Qwen2TokenizerFast) -> Qwen3OmniMoeConfig:
    """The architecture in small."""
    token = tokenizer.convert_tokens_to_ids
    media = {
        "audio_token_id": token("<|audio_pad|>"),
        "image_token_id": token("<|image_pad|>"),
        "video_token_id": token("<|video_pad|>"),
        "audio_start_token_id": token("<|audio_start|>"),
        "vision_start_token_id": token("<|vision_start|>"),
    }
    config = Qwen3OmniMoeConfig(
        thinker_config=_thinker(len(tokenizer), media | {"user_token_id": token("user")}),
        talker_config=_talker(media),
        code2wav_config=_code2wav(),
        im_start_token_id=token("<|im_start|>"),
        im_end_token_id=token("<|im_end|>"),
        tts_pad_token_id=token("<tts_pad>"),
        tts_bos_token_id=token("<tts_text_bos>"),
        tts_eos_token_id=token("<tts_text_eod>"),
        system_token_id=token("system"),
        user_token_id=token("user"),
        assistant_token_id=token("assistant"),
    )
    config.architectures = ["Qwen3OmniMoeForConditionalGeneration"]
    return config


def _rotary(**sections: Any) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 10000.0, **sections}


def _thinker(vocabulary: int, tokens: dict[str, int]) -> dict[str, Any]:
    return {
        "audio_config": {
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "output_dim": 64,
            "downsample_hidden_size": 16,
        },
        "vision_config": {
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
            "image_size": 128,
            "apply_vit_abs_pos_embed": True,
        },
        "text_config": {
            "vocab_size": vocabulary,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "rope_parameters": _rotary(mrope_section=[6, 5, 5], mrope_interleaved=True),
            "tie_word_embeddings": False,
            "max_position_embeddings": 32768,
        },
        **tokens,
    }


def _talker(tokens: dict[str, int]) -> dict[str, Any]:
    return {
        "text_config": {
            "vocab_size": CODEBOOK + RESERVED,
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
            "rope_parameters": _rotary(mrope_section=[6, 5, 5], mrope_interleaved=True),
            "max_position_embeddings": 32768,
        },
        "code_predictor_config": {
            "vocab_size": CODEBOOK,
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "num_code_groups": CODE_GROUPS,
            "rope_parameters": _rotary(),
        },
        "num_code_groups": CODE_GROUPS,
        "thinker_hidden_size": 64,
        "accept_hidden_layer": 2,
        "codec_eos_token_id": CODEBOOK + 6,
        "codec_nothink_id": CODEBOOK + 1,
        "codec_think_bos_id": CODEBOOK + 2,
        "codec_think_eos_id": CODEBOOK + 3,
        "codec_pad_id": CODEBOOK + 4,
        "codec_bos_id": CODEBOOK + 5,
        "speaker_id": SPEAKERS,
        "spatial_merge_size": 2,
        **tokens,
    }


def _code2wav() -> dict[str, Any]:
    return {
        "codebook_size": CODEBOOK,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_quantizers": CODE_GROUPS,
        "sliding_window": 12,
        "upsample_rates": [4, 3],
        "upsampling_ratios": [2, 2],
        "decoder_dim": 32,
        "layer_scale_initial_scale": 0.5,
        "rope_parameters": _rotary(),
    }


def make_model(config: Qwen3OmniMoeConfig, seed: int) -> Qwen3OmniMoeForConditionalGeneration:
    """The reference with random weights, large enough that its choices are not all alike."""
    torch.manual_seed(seed)
    model = Qwen3OmniMoeForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                fan_in = parameter[0].numel() if "experts" not in name else parameter.shape[-1]
                gain = 0.7 if name.startswith("code2wav") else 1.5
                parameter.normal_(0.0, 1.0 if "embed" in name else gain * fan_in**-0.5)
            elif name.endswith(("alpha", "beta")):
                parameter.normal_(0.0, 0.1)
            elif name.endswith("gamma"):
                parameter.uniform_(0.2, 0.4)
    return model


def save_tiny_checkpoint(folder: Path, seed: int = 0) -> None:
    """Writes the checkpoint, its weights in several shards."""
    processor = make_processor()
    model = make_model(make_config(processor.tokenizer), seed)
    model.save_pretrained(folder, max_shard_size="1MB")
    processor.save_pretrained(folder)


if __name__ == "__main__":
    save_tiny_checkpoint(Path(sys.argv[1]))
