"""Seeded random checkpoints of the real architectures; never shipped."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

LARK_CONFIG = {
    "architectures": ["LarkTalker"],
    "model_type": "lark_talker",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 640,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "sliding_window": 128,
    "max_position_embeddings": 32768,
    "vocab_size": 64,
    "phoneme_vocabulary": 178,
    "lookahead": 4,
    "codebook_sizes": [32, 512, 256, 512, 512],
    "predictor_hidden_size": 512,
    "num_voices": 8,
    "torch_dtype": "float32",
}


def lark_talker_tensors(seed: int) -> dict[str, torch.Tensor]:
    """Random weights under the names of `talker.safetensors`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) / shape[-1] ** 0.5

    sizes = LARK_CONFIG["codebook_sizes"]
    hidden, inner, width = 256, 640, 512
    tensors = {"model.phoneme_embedding.weight": normal(178, hidden)}
    for index in range(4):
        tensors[f"model.lookahead_embedding.{index}.weight"] = normal(178, hidden)
    tensors["model.voice_embedding.weight"] = normal(8, hidden)
    for index, rows in enumerate([64] + [size + 1 for size in sizes[1:]]):
        tensors[f"model.code_embedding.{index}.weight"] = normal(rows, hidden)
    for index in range(4):
        layer = f"model.layers.{index}"
        shapes = {"q_proj": (256, 256), "k_proj": (128, 256), "v_proj": (128, 256)}
        for name, shape in {**shapes, "o_proj": (256, 256)}.items():
            tensors[f"{layer}.self_attn.{name}.weight"] = normal(*shape)
        for name in ("q_norm", "k_norm"):
            tensors[f"{layer}.self_attn.{name}.weight"] = torch.ones(64)
        tensors[f"{layer}.mlp.gate_proj.weight"] = normal(inner, hidden)
        tensors[f"{layer}.mlp.up_proj.weight"] = normal(inner, hidden)
        tensors[f"{layer}.mlp.down_proj.weight"] = normal(hidden, inner)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{layer}.{name}.weight"] = torch.ones(hidden)
    tensors["model.norm.weight"] = torch.ones(hidden)
    tensors["lm_head.weight"] = normal(64, hidden)
    for index, size in enumerate(sizes[1:]):
        tensors[f"predictor.embedding.{index}.weight"] = normal(sizes[index], hidden)
        tensors[f"predictor.input.{index}.weight"] = normal(width, 2 * hidden)
        tensors[f"predictor.input.{index}.bias"] = torch.zeros(width)
        tensors[f"predictor.output.{index}.weight"] = normal(size, width)
        tensors[f"predictor.output.{index}.bias"] = torch.zeros(size)
    return tensors


def write_lark_talker(folder: Path, seed: int = 0) -> Path:
    """Writes a random Talker as `config.json` and `talker.safetensors`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LARK_CONFIG))
    save_file(lark_talker_tensors(seed), folder / "talker.safetensors")
    return folder
