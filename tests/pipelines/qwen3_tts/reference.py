"""The reference: the package `qwen-tts-compat`, in a process of its own.

It imports librosa and so llvmlite, one of whose modules answers any question with a function.
vLLM's CPU worker asks every attribute of every loaded module when it starts, and fails at that.

Its own `from_pretrained` leaves the rotary frequencies uninitialised under the installed
transformers, so the models are built from their configurations, which computes those, and every
weight is loaded strictly.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any
from unittest import mock

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
from qwen_tts.inference.qwen3_tts_model import Qwen3TTSModel, VoiceClonePromptItem
from qwen_tts.inference.qwen3_tts_tokenizer import Qwen3TTSTokenizer
from safetensors.torch import load_file
from torch import nn
from transformers import EncodecFeatureExtractor, Qwen2TokenizerFast

from tests.drawing import Draws, ForcedDraws

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


Sound = tuple[np.ndarray, int, str | None]
"""Reference audio: samples, samples a second, what is said; None: only the embedding is taken."""


@functools.cache
def front_of(folder: Path) -> Qwen3TTSModel:
    model = Qwen3TTSForConditionalGeneration(Qwen3TTSConfig.from_pretrained(folder))
    load_strictly(model, folder)
    codec = Qwen3TTSTokenizer()
    codec.model = load_codec(folder / "speech_tokenizer")
    codec.config, codec.device = codec.model.config, torch.device("cpu")
    codec.feature_extractor = EncodecFeatureExtractor.from_pretrained(folder / "speech_tokenizer")
    model.load_speech_tokenizer(codec)
    defaults = json.loads((folder / "generation_config.json").read_text())
    model.load_generate_config(defaults)
    processor = Qwen3TTSProcessor(Qwen2TokenizerFast.from_pretrained(folder))
    return Qwen3TTSModel(model, processor, defaults)


def heard(front: Qwen3TTSModel, sound: Sound) -> VoiceClonePromptItem:
    samples, rate, text = sound
    return front.create_voice_clone_prompt(
        [(samples, rate)], [text], x_vector_only_mode=text is None
    )[0]


def clone(folder: Path, sound: Sound) -> tuple[np.ndarray, np.ndarray | None]:
    """The speaker embedding and the frames of reference audio."""
    item = heard(front_of(folder), sound)
    frames = None if item.ref_code is None else item.ref_code.numpy()
    return item.ref_spk_embedding.numpy(), frames


def codes(
    folder: Path,
    text: str,
    instruct: str | None = None,
    language: str = "auto",
    speaker: str | None = None,
    whole: bool = False,
    sound: Sound | None = None,
    steps: int = 25,
    repetition_penalty: float = 1.05,
) -> np.ndarray:
    """Greedy codes by the reference's `generate`, shape [frames, codebooks].

    Of `steps` steps the last one's codes are never completed there.
    """
    front = front_of(folder)
    named: dict[str, Any] = {}
    if sound is not None:
        named["voice_clone_prompt"] = front._prompt_items_to_voice_clone_prompt(
            [heard(front, sound)]
        )
        said = sound[2]
        named["ref_ids"] = [
            None if said is None else front._tokenize_texts([front._build_ref_text(said)])[0]
        ]
    if instruct:
        named["instruct_ids"] = front._tokenize_texts([front._build_instruct_text(instruct)])
    made, _ = front.model.generate(
        input_ids=front._tokenize_texts([front._build_assistant_text(text)]),
        languages=[language],
        speakers=[speaker],
        non_streaming_mode=whole,
        max_new_tokens=steps,
        repetition_penalty=repetition_penalty,
        **GREEDY,
        **named,
    )
    return made[0].numpy()


def drawn_from(
    folder: Path, text: str, draws: list[Draws], language: str, speaker: str, **sampling: Any
) -> ForcedDraws:
    """What the reference's `generate` would have drawn our draws from, for many requests at once.

    Args:
        folder: The checkpoint.
        text: What each request says.
        draws: Ours in its order: of each step the token, then the residual codes, but for those of
            the last step; each of shape [requests].
        language: The requests' language.
        speaker: Their speaker.
        sampling: What is not named is as the reference has it.
    """
    front, forced = front_of(folder), ForcedDraws(draws)
    requests = len(draws[0])
    with mock.patch.object(torch, "multinomial", forced):
        front.model.generate(
            input_ids=front._tokenize_texts([front._build_assistant_text(text)]) * requests,
            languages=[language] * requests,
            speakers=[speaker] * requests,
            non_streaming_mode=False,
            max_new_tokens=1 + (len(draws) - 1) // front.model.config.talker_config.num_code_groups,
            **sampling,
        )
    return forced


def decode(folder: Path, frames: list[np.ndarray]) -> list[np.ndarray]:
    """The sound of frames, each decoded in one piece."""
    codec = front_of(folder).model.speech_tokenizer
    sounds = [codec.decode([{"audio_codes": part}]) for part in frames]
    assert all(rate == 24_000 for _, rate in sounds)
    return [sound[0] for sound, _ in sounds]
