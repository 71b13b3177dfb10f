"""The reference: the package `qwen-tts-compat`, loaded from a checkpoint's folder.

Its own `from_pretrained` leaves the rotary frequencies uninitialised under the installed
transformers, so the models are built from their configurations, which computes those, and every
weight is loaded strictly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from qwen_tts.core.models import (
    Qwen3TTSConfig,
    Qwen3TTSForConditionalGeneration,
    Qwen3TTSProcessor,
)
from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
    Qwen3TTSTokenizerV2Config,
)
from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model
from qwen_tts.inference.qwen3_tts_model import Qwen3TTSModel
from qwen_tts.inference.qwen3_tts_tokenizer import Qwen3TTSTokenizer
from safetensors.torch import load_file
from torch import nn
from transformers import EncodecFeatureExtractor, Qwen2TokenizerFast

GREEDY = {
    "do_sample": False,
    "subtalker_dosample": False,
    "top_k": None,
    "top_p": None,
    "temperature": None,
    "subtalker_top_k": None,
    "subtalker_top_p": None,
    "subtalker_temperature": None,
}


def load_strictly(model: nn.Module, folder: Path) -> None:
    weights: dict[str, torch.Tensor] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        weights |= load_file(shard)
    model.load_state_dict(weights, strict=True)
    model.eval()


def load_codec(folder: Path) -> Qwen3TTSTokenizerV2Model:
    codec = Qwen3TTSTokenizerV2Model(Qwen3TTSTokenizerV2Config.from_pretrained(folder))
    load_strictly(codec, folder)
    return codec


@dataclass(frozen=True)
class Reference:
    """The reference's front over one checkpoint."""

    model: Qwen3TTSModel

    @classmethod
    def load(cls, folder: Path) -> Reference:
        model = Qwen3TTSForConditionalGeneration(Qwen3TTSConfig.from_pretrained(folder))
        load_strictly(model, folder)
        codec = Qwen3TTSTokenizer()
        codec.model = load_codec(folder / "speech_tokenizer")
        codec.config, codec.device = codec.model.config, torch.device("cpu")
        codec.feature_extractor = EncodecFeatureExtractor.from_pretrained(
            folder / "speech_tokenizer"
        )
        model.load_speech_tokenizer(codec)
        defaults = json.loads((folder / "generation_config.json").read_text())
        model.load_generate_config(defaults)
        processor = Qwen3TTSProcessor(Qwen2TokenizerFast.from_pretrained(folder))
        return cls(Qwen3TTSModel(model, processor, defaults))

    def codes(self, text: str, **arguments: Any) -> np.ndarray:
        """Greedy codes by the reference's `generate`, shape [frames, codebooks].

        Arguments:
            instruct: Instructions.
            language: The language's name; `auto` if not said.
            speaker: A built-in speaker.
            whole: Whether the whole text is read first.
            clone: What `create_voice_clone_prompt` made.
            steps: The most steps; the last one's codes are never completed there.
        """
        front = self.model
        instruct, clone = arguments.get("instruct"), arguments.get("clone")
        named: dict[str, Any] = {}
        if clone is not None:
            named["voice_clone_prompt"] = front._prompt_items_to_voice_clone_prompt([clone])
            text_of_reference = clone.ref_text if clone.icl_mode else None
            named["ref_ids"] = [
                None
                if text_of_reference is None
                else front._tokenize_texts([front._build_ref_text(text_of_reference)])[0]
            ]
        if instruct:
            told = front._tokenize_texts([front._build_instruct_text(instruct)])
            named["instruct_ids"] = told
        made, _ = front.model.generate(
            input_ids=front._tokenize_texts([front._build_assistant_text(text)]),
            languages=[arguments.get("language", "auto")],
            speakers=[arguments.get("speaker")],
            non_streaming_mode=arguments.get("whole", False),
            max_new_tokens=arguments.get("steps", 25),
            **GREEDY,
            **named,
        )
        return made[0].numpy()
