"""Turns the language model's GGUF file into the form that vLLM loads fast.

The 4-bit weights are dequantised once and kept in half precision; what they lost when they were
quantised stays lost.
"""

from __future__ import annotations

from pathlib import Path

from engine.prepare import Progress

GGUF_FILE = "model.gguf"


def prepare_language_model(source: Path, target: Path, progress: Progress) -> None:
    """Writes `config.json`, `model.safetensors` and the tokenizer below `target`.

    Args:
        source: Folder that holds `model.gguf`.
        target: An empty folder.
        progress: Told of each step.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    progress("Reading the language model", 0, 3)
    quantised = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF_FILE, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF_FILE)
    progress("Converting it to half precision", 1, 3)
    # A model read from GGUF refuses to be saved, so its weights move into a fresh one.
    config = quantised.config
    del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config)
    fresh.load_state_dict(quantised.state_dict())
    fresh.to(torch.float16)
    progress("Writing it", 2, 3)
    fresh.save_pretrained(target)
    tokenizer.save_pretrained(target)
    progress("Writing it", 3, 3)
