"""Folders laid out as the published checkpoints are, with a tiny vocabulary and without values.

There is no `tokenizer.json` and no `processor_config.json`, but what older versions of
transformers wrote. Files of weights have names, types and shapes; their values are holes in the
file, which take no room.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

Shapes = Mapping[str, tuple[int, ...]]

BYTES = {"BF16": 2, "F32": 4}

OMNI_PREPROCESSOR: dict[str, Any] = {
    "chunk_length": 300,
    "dither": 0.0,
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 128,
    "hop_length": 160,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_processor_type": "Qwen2VLImageProcessor",
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "max_pixels": 12845056,
    "merge_size": 2,
    "min_pixels": 3136,
    "n_fft": 400,
    "n_samples": 4800000,
    "nb_max_frames": 30000,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "sampling_rate": 16000,
    "temporal_patch_size": 2,
}
TTS_PREPROCESSOR: dict[str, Any] = {
    "padding_side": "left",
    "padding_value": 0.0,
    "processor_class": "Qwen3TTSProcessor",
    "return_attention_mask": True,
}


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file, and its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2))


def write_tokenizer(
    folder: Path,
    tokenizer: PreTrainedTokenizerFast,
    processor_class: str,
    special_tokens: Mapping[str, str] | None = None,
) -> None:
    """Writes `vocab.json`, `merges.txt` and `tokenizer_config.json`."""
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    write_json(folder / "vocab.json", parts["model"]["vocab"])
    merges = ["#version: 0.2", *(" ".join(pair) for pair in parts["model"]["merges"])]
    (folder / "merges.txt").write_text("\n".join(merges) + "\n")
    added = {
        str(token["id"]): {
            "content": token["content"],
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for token in parts["added_tokens"]
    }
    special = dict(special_tokens or {})
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": False,
            "add_prefix_space": False,
            "added_tokens_decoder": added,
            "additional_special_tokens": [token["content"] for token in added.values()],
            "bos_token": None,
            "clean_up_tokenization_spaces": False,
            "eos_token": "<|im_end|>",
            "errors": "replace",
            "extra_special_tokens": special,
            "model_max_length": 131072,
            "pad_token": "<|endoftext|>",
            "processor_class": processor_class,
            "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer",
            "unk_token": None,
            **special,
        },
    )


def write_processor(folder: Path, processor_class: str, patch_size: int, template: str) -> None:
    """Writes `preprocessor_config.json` and `chat_template.json` of an omni checkpoint."""
    own = {"patch_size": patch_size, "processor_class": processor_class}
    write_json(folder / "preprocessor_config.json", OMNI_PREPROCESSOR | own)
    write_json(folder / "chat_template.json", {"chat_template": template})


def write_weights(folder: Path, shapes: Shapes, dtype: str = "BF16") -> None:
    """Writes `model.safetensors` without values."""
    header, offset = {}, 0
    for name, shape in sorted(shapes.items()):
        end = offset + BYTES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
