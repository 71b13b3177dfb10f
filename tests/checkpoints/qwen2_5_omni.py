"""A tiny Qwen2.5-Omni checkpoint: the real architecture, seeded random weights, its own tokenizer.

Made from the reference's own configuration classes (transformers, `qwen2_5_omni`) and saved as the
published checkpoints are: one folder with the weights of all stages in shards, the speakers, a
tokenizer and the processor's configuration. As a script:
`python -m tests.checkpoints.qwen2_5_omni FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2_5OmniProcessor,
    Qwen2TokenizerFast,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    WhisperFeatureExtractor,
)

SPECIAL_TOKENS = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
OTHER_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
    "<tts_text_bos_single>",
)

# Renders as the published template does for text, sound and pictures.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\n' }}"
    "{%- if message.content is string -%}{{ message.content }}"
    "{%- else -%}{%- for part in message.content -%}"
    "{%- if part.type == 'audio' -%}{{ '<|audio_bos|><|AUDIO|><|audio_eos|>' }}"
    "{%- elif part.type == 'image' -%}{{ '<|vision_bos|><|IMAGE|><|vision_eos|>' }}"
    "{%- elif part.type == 'text' -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{ '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)

HIDDEN = 64
MEL = 16
SPEAKER_WIDTH = 12
LAST_CODE = 39
CODEC_PAD, CODEC_BEGIN, CODEC_END, CODEC_MASK = 40, 41, 42, 43
SPEAKERS = {"Chelsie": "<tts_text_bos>", "Ethan": "<tts_text_bos_single>"}
"""The token that opens a speaker's text."""


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


def make_processor() -> Qwen2_5OmniProcessor:
    """The reference's processor over the tiny tokenizer."""
    return Qwen2_5OmniProcessor(
        image_processor=Qwen2VLImageProcessor(),
        video_processor=Qwen2VLVideoProcessor(),
        feature_extractor=WhisperFeatureExtractor(feature_size=128),
        tokenizer=make_tokenizer(),
        chat_template=CHAT_TEMPLATE,
    )


def make_config(tokenizer: Qwen2TokenizerFast) -> Qwen2_5OmniConfig:
    """The architecture in small."""
    token = tokenizer.convert_tokens_to_ids
    media = {
        "audio_token_index": token("<|AUDIO|>"),
        "image_token_index": token("<|IMAGE|>"),
        "video_token_index": token("<|VIDEO|>"),
        "audio_start_token_id": token("<|audio_bos|>"),
        "audio_end_token_id": token("<|audio_eos|>"),
    }
    vision = {
        "vision_start_token_id": token("<|vision_bos|>"),
        "vision_end_token_id": token("<|vision_eos|>"),
    }
    text = {
        "tts_text_start_token_id": token("<tts_text_bos>"),
        "tts_text_end_token_id": token("<tts_text_eod>"),
        "tts_text_pad_token_id": token("<tts_pad>"),
    }
    config = Qwen2_5OmniConfig(
        thinker_config=_thinker(len(tokenizer), media | vision | {"user_token_id": token("user")}),
        talker_config=_talker(media | vision | text),
        token2wav_config={"dit_config": _denoiser(), "bigvgan_config": _vocoder()},
    )
    config.architectures = ["Qwen2_5OmniModel"]
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
            "output_dim": HIDDEN,
        },
        "vision_config": {
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": HIDDEN,
            "fullatt_block_indexes": [1],
        },
        "text_config": {
            "vocab_size": vocabulary,
            "hidden_size": HIDDEN,
            "intermediate_size": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "rope_parameters": _rotary(mrope_section=[4, 6, 6]),
            "tie_word_embeddings": False,
            "max_position_embeddings": 4096,
        },
        **tokens,
    }


def _talker(tokens: dict[str, int]) -> dict[str, Any]:
    return {
        "vocab_size": 48,
        "tts_codec_pad_token_id": CODEC_PAD,
        "tts_codec_start_token_id": CODEC_BEGIN,
        "tts_codec_end_token_id": CODEC_END,
        "tts_codec_mask_token_id": CODEC_MASK,
        "embedding_size": HIDDEN,
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        # As in the published checkpoints it is not the width divided by the heads.
        "head_dim": 32,
        "rope_parameters": _rotary(mrope_section=[4, 6, 6]),
        "max_position_embeddings": 4096,
        **tokens,
    }


def _denoiser() -> dict[str, Any]:
    return {
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "head_dim": 16,
        "emb_dim": 24,
        "block_size": 8,
        "look_ahead_layers": [2],
        "look_backward_layers": [0, 3],
        "repeats": 2,
        "num_embeds": LAST_CODE,
        "mel_dim": MEL,
        "enc_emb_dim": SPEAKER_WIDTH,
        "enc_dim": 8,
        "enc_channels": [16, 16, 16, 16, 48],
        "enc_attention_channels": 8,
        "enc_se_channels": 8,
        "rope_parameters": _rotary(),
    }


def _vocoder() -> dict[str, Any]:
    return {"mel_dim": MEL, "upsample_initial_channel": 128}


def make_model(config: Qwen2_5OmniConfig, seed: int) -> Qwen2_5OmniForConditionalGeneration:
    """The reference with random weights, large enough that its choices are not all alike."""
    torch.manual_seed(seed)
    model = Qwen2_5OmniForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bigvgan" in name and parameter.ndim > 1:
                # Deep and without norms: larger weights would blow rounding errors up.
                gain = 0.3 if "resblocks" in name else 1.0
                parameter.normal_(0.0, gain * parameter[0].numel() ** -0.5)
            elif parameter.ndim > 1:
                scale = 1.0 if "embed" in name else 1.2 * parameter[0].numel() ** -0.5
                parameter.normal_(0.0, scale)
            elif name.endswith(("alpha", "beta", "bias")):
                parameter.normal_(0.0, 0.1)
        # What is no code is never the likeliest, as in a trained model; the reference fails on it.
        model.talker.codec_head.weight[CODEC_MASK:] = 0.0
    return model


def make_speakers(tokenizer: Qwen2TokenizerFast, seed: int) -> dict[str, dict[str, Any]]:
    """Random voices under the keys of `spk_dict.pt`."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: {
            "bos_token": tokenizer.convert_tokens_to_ids(begin),
            "cond": torch.randn(1, SPEAKER_WIDTH, generator=generator),
            "ref_mel": torch.randn(1, 40 + 10 * index, MEL, generator=generator) - 4.0,
        }
        for index, (name, begin) in enumerate(SPEAKERS.items())
    }


def save_tiny_checkpoint(folder: Path, seed: int = 0) -> None:
    """Writes the checkpoint, its weights in several shards."""
    processor = make_processor()
    model = make_model(make_config(processor.tokenizer), seed)
    model.save_pretrained(folder, max_shard_size="300KB")
    processor.save_pretrained(folder)
    torch.save(make_speakers(processor.tokenizer, seed), folder / "spk_dict.pt")


if __name__ == "__main__":
    save_tiny_checkpoint(Path(sys.argv[1]))
