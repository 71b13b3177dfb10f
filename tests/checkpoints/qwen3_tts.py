"""A tiny Qwen3-TTS checkpoint: the real architecture, seeded random weights, its own tokenizer.

Made from the reference's own classes (the package `qwen-tts-compat`) and saved as the published
checkpoints are: sharded safetensors beside `config.json` and the text tokenizer, and the codec in
`speech_tokenizer`. As a script:

    python -m tests.checkpoints.qwen3_tts FOLDER [custom_voice|voice_design|base] [benchmark]

The reference is imported by the functions that need it: no engine can be built in a process that
has imported it (see `tests.pipelines.qwen3_tts.reference`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import save_torch_state_dict
from torch import nn
from transformers import EncodecFeatureExtractor, Qwen2TokenizerFast

from tests.checkpoints.qwen3_tts_tokenizer import make_tokenizer

if TYPE_CHECKING:
    from qwen_tts.core.models import Qwen3TTSConfig
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Config,
    )

RESERVED = 1024
"""Tokens behind the codes that a step may not sample, but for the one that ends it."""


class Variant(StrEnum):
    """What the model is for."""

    CUSTOM_VOICE = "custom_voice"
    VOICE_DESIGN = "voice_design"
    BASE = "base"


@dataclass(frozen=True)
class Sizes:
    """Of the model; everything else follows."""

    hidden: int
    layers: int
    heads: int
    codebooks: int
    codes: int
    predictor_hidden: int
    predictor_layers: int
    decoder: int
    end_scale: float


SMALL = Sizes(96, 3, 6, 6, 64, 64, 2, 64, 1.7)
"""For tests."""

BENCHMARK = Sizes(256, 6, 4, 16, 1024, 256, 2, 128, 1.0)
"""The talker has 6 layers of 256 and 16 codebooks; requests hardly ever end by themselves."""


def make_config(variant: Variant, sizes: Sizes, tokenizer: Qwen2TokenizerFast) -> Qwen3TTSConfig:
    """The architecture in small; special codes lie where the published checkpoints have them."""
    from qwen_tts.core.models import Qwen3TTSConfig

    first = sizes.codes
    shared = {
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.heads // 2,
        "num_code_groups": sizes.codebooks,
        "rope_theta": 1_000_000,
        "pad_token_id": None,  # as the published files say
        "max_position_embeddings": 4096,
    }
    token = tokenizer.convert_tokens_to_ids
    talker = {
        **shared,
        "vocab_size": sizes.codes + RESERVED,
        "hidden_size": sizes.hidden,
        "head_dim": 32,
        "intermediate_size": 2 * sizes.hidden,
        "num_hidden_layers": sizes.layers,
        "rope_scaling": {
            "interleaved": True,
            "mrope_section": [6, 5, 5],
            "rope_type": "default",
            "type": "default",
        },
        "text_hidden_size": 2 * sizes.hidden,
        "text_vocab_size": len(tokenizer),
        "position_id_per_seconds": 13,
        "codec_pad_id": first,
        "codec_bos_id": first + 1,
        "codec_eos_token_id": first + 2,
        "codec_think_id": first + 6,
        "codec_nothink_id": first + 7,
        "codec_think_bos_id": first + 8,
        "codec_think_eos_id": first + 9,
        "codec_language_id": {
            "chinese": first + 10,
            "english": first + 11,
            "german": first + 12,
            "sichuan_dialect": first + 13,
        },
        "spk_id": {"vivian": first + 20, "ryan": first + 21, "eric": first + 22},
        "spk_is_dialect": {"vivian": False, "ryan": False, "eric": "sichuan_dialect"},
        "code_predictor_config": {
            **shared,
            "vocab_size": sizes.codes,
            "hidden_size": sizes.predictor_hidden,
            "head_dim": 16,
            "intermediate_size": 2 * sizes.predictor_hidden,
            "num_hidden_layers": sizes.predictor_layers,
        },
    }
    if variant is not Variant.CUSTOM_VOICE:
        talker |= {"spk_id": {}, "spk_is_dialect": {}}
    speaker_encoder = {
        "mel_dim": 128,
        "enc_dim": sizes.hidden,
        "enc_channels": [32, 32, 32, 32, 96],
        "enc_attention_channels": 16,
        "enc_se_channels": 16,
        "enc_res2net_scale": 4,
    }
    config = Qwen3TTSConfig(
        talker_config=talker,
        speaker_encoder_config=speaker_encoder,
        tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="1b7",
        tts_model_type=variant.value,
        im_start_token_id=token("<|im_start|>"),
        im_end_token_id=token("<|im_end|>"),
        assistant_token_id=token("assistant"),
        tts_pad_token_id=token("<tts_pad>"),
        tts_bos_token_id=token("<tts_text_bos>"),
        tts_eos_token_id=token("<tts_text_eod>"),
    )
    config.architectures = ["Qwen3TTSForConditionalGeneration"]
    return config


def make_codec_config(sizes: Sizes) -> Qwen3TTSTokenizerV2Config:
    """The 12 Hz codec in small: the same rates and receptive fields."""
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Config,
    )

    decoder = {
        "codebook_size": sizes.codes,
        "codebook_dim": 32,
        "hidden_size": sizes.decoder,
        "latent_dim": sizes.decoder,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        # In the small one, as in the published, not the width divided by the heads.
        "head_dim": 32,
        "sliding_window": 12,
        "intermediate_size": 2 * sizes.decoder,
        "num_hidden_layers": 2,
        "num_quantizers": sizes.codebooks,
        "decoder_dim": sizes.decoder,
    }
    encoder = {
        "audio_channels": 1,
        "hidden_size": 32,
        "num_filters": 4,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "intermediate_size": 64,
        "codebook_size": sizes.codes,
        "codebook_dim": 16,
        "vector_quantization_hidden_dimension": 16,
        "num_quantizers": sizes.codebooks + 2,
        "upsample_groups": 32,
        "sliding_window": 20,
        "use_streaming": False,
    }
    config = Qwen3TTSTokenizerV2Config(
        encoder_config=encoder,
        decoder_config=decoder,
        encoder_valid_num_quantizers=sizes.codebooks,
    )
    config.architectures = ["Qwen3TTSTokenizerV2Model"]
    return config


def randomise(module: nn.Module, seed: int) -> None:
    """Weights that let every part of the architecture show in the output."""
    generator = torch.Generator().manual_seed(seed)
    named = [*module.named_parameters(), *module.named_buffers()]
    for name, values in named:
        if name.endswith("inv_freq") or not values.is_floating_point():
            continue
        noise = torch.randn(values.shape, generator=generator)
        if "cluster_usage" in name or name.endswith("initialized"):
            values.data = 1 + noise.abs()
        elif values.ndim > 1:
            fan_in = values[0].numel() if values.ndim > 2 else values.shape[-1]
            values.data = noise if "embed" in name else noise / fan_in**0.5
        elif "norm" in name and name.endswith("weight"):
            values.data = 1 + 0.1 * noise
        else:
            values.data = 0.2 * noise


def save_config(config: Qwen3TTSConfig, folder: Path) -> None:
    """Saves it as the published ones are, by an older transformers than the installed one."""
    config.save_pretrained(folder)
    values = json.loads((folder / "config.json").read_text())
    values["speaker_encoder_config"].pop("model_type", None)
    talker = values["talker_config"]
    talker["rope_scaling"] = talker.pop("rope_parameters")
    del talker["rope_scaling"]["rope_theta"]
    talker["code_predictor_config"].pop("rope_parameters")
    talker["code_predictor_config"]["rope_scaling"] = None
    (folder / "config.json").write_text(json.dumps(values, indent=2))


def make(folder: Path, variant: Variant, sizes: Sizes = SMALL, seed: int = 0) -> Path:
    """Writes the whole checkpoint; the same seed makes the same weights."""
    from qwen_tts.core.models import Qwen3TTSForConditionalGeneration
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Model,
    )

    tokenizer = make_tokenizer()
    config = make_config(variant, sizes, tokenizer)
    model = Qwen3TTSForConditionalGeneration(config).eval()
    randomise(model, seed)
    head = model.talker.codec_head.weight.data
    head[config.talker_config.codec_eos_token_id] *= sizes.end_scale
    save_config(config, folder)
    # The reference's `save_pretrained` does not fit the installed transformers.
    save_torch_state_dict(model.state_dict(), folder, max_shard_size="400KB")
    tokenizer.save_pretrained(folder)
    defaults: dict[str, Any] = {
        "do_sample": True,
        "repetition_penalty": 1.05,
        "temperature": 0.9,
        "top_k": 50,
        "top_p": 1.0,
        "subtalker_dosample": True,
        "subtalker_temperature": 0.9,
        "subtalker_top_k": 50,
        "subtalker_top_p": 1.0,
        "max_new_tokens": 2048,
    }
    (folder / "generation_config.json").write_text(json.dumps(defaults, indent=2))
    codec = Qwen3TTSTokenizerV2Model(make_codec_config(sizes)).eval()
    randomise(codec, seed + 1)
    # Sound that is neither silent nor clipped.
    codec.decoder.decoder[-1].conv.weight.data *= 0.05
    for name, values in codec.decoder.decoder.named_parameters():
        if "conv2.conv.weight" in name:
            values.data *= 0.3
    codec.config.save_pretrained(folder / "speech_tokenizer")
    save_torch_state_dict(codec.state_dict(), folder / "speech_tokenizer")
    EncodecFeatureExtractor(feature_size=1, sampling_rate=24_000).save_pretrained(
        folder / "speech_tokenizer"
    )
    return folder


if __name__ == "__main__":
    _, where, *rest = sys.argv
    chosen = Variant(rest[0]) if rest else Variant.CUSTOM_VOICE
    make(Path(where), chosen, BENCHMARK if "benchmark" in rest else SMALL)
