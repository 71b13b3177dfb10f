"""Every published checkpoint as a folder without values, and vLLM's models built without memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers import Qwen2_5OmniForConditionalGeneration
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.utils.torch_utils import set_default_torch_dtype

from engine import process_groups
from engine.pipeline_config import PipelineConfig
from pipelines.qwen2_5_omni.checkpoint import SPEAKER_FILE, load_config
from pipelines.qwen2_5_omni.pipeline import PIPELINE as QWEN2_5_OMNI
from pipelines.qwen3_omni.pipeline import PIPELINE as QWEN3_OMNI
from pipelines.qwen3_tts.configuration import CODEC_FOLDER
from pipelines.qwen3_tts.pipeline import PIPELINE as QWEN3_TTS
from tests.checkpoints import (
    published,
    published_qwen2_5_omni,
    published_qwen3_omni,
    published_tts_weights,
    published_weights,
    qwen2_5_omni,
    qwen3_omni,
    qwen3_tts_tokenizer,
)
from tests.checkpoints.published_folders import (
    TTS_PREPROCESSOR,
    Shapes,
    write_json,
    write_processor,
    write_tokenizer,
    write_weights,
)


@dataclass(frozen=True)
class Published:
    """A published checkpoint.

    Attributes:
        name: Its name on the hub, without the owner.
        pipeline: What serves it.
        write: Writes its folder and gives names and shapes of the weights beside `config.json`.
    """

    name: str
    pipeline: PipelineConfig
    write: Callable[[Path], Shapes]

    def __str__(self) -> str:
        return self.name


def _write_qwen3_tts(folder: Path, variant: str, size: str) -> Shapes:
    write_json(folder / "config.json", published.qwen3_tts(variant, size))
    write_json(folder / "generation_config.json", published.QWEN3_TTS_GENERATION)
    write_json(folder / "preprocessor_config.json", TTS_PREPROCESSOR)
    write_tokenizer(folder, qwen3_tts_tokenizer.make_tokenizer(), "Qwen3TTSProcessor")
    write_json(folder / CODEC_FOLDER / "config.json", published.QWEN3_TTS_CODEC)
    write_weights(folder / CODEC_FOLDER, published_tts_weights.codec(), "F32")
    shapes = published_tts_weights.qwen3_tts(variant, size)
    write_weights(folder, shapes)
    return shapes


def _write_qwen3_omni(folder: Path) -> Shapes:
    write_json(folder / "config.json", published_qwen3_omni.QWEN3_OMNI)
    special = qwen3_omni.SPECIAL_TOKENS
    write_tokenizer(folder, qwen3_omni.make_tokenizer(), "Qwen3OmniMoeProcessor", special)
    write_processor(folder, "Qwen3OmniMoeProcessor", 16, qwen3_omni.CHAT_TEMPLATE)
    shapes = published_weights.qwen3_omni()
    write_weights(folder, shapes)
    return shapes


def _write_qwen2_5_omni(folder: Path, sizes: published_qwen2_5_omni.Sizes) -> Shapes:
    write_json(folder / "config.json", published_qwen2_5_omni.qwen2_5_omni(sizes))
    special = qwen2_5_omni.SPECIAL_TOKENS
    write_tokenizer(folder, qwen2_5_omni.make_tokenizer(), "Qwen2_5OmniProcessor", special)
    write_processor(folder, "Qwen2_5OmniProcessor", 14, qwen2_5_omni.CHAT_TEMPLATE)
    speaker = {"bos_token": 151872, "cond": torch.zeros(1, 192), "ref_mel": torch.zeros(1, 400, 80)}
    torch.save(
        {"Chelsie": speaker, "Ethan": speaker | {"bos_token": 151870}}, folder / SPEAKER_FILE
    )
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(load_config(folder))
    shapes = {name: tuple(values.shape) for name, values in model.state_dict().items()}
    # The file has it, and no module of today keeps it.
    shapes["token2wav.code2wav_dit_model.rotary_embed.inv_freq"] = (32,)
    write_weights(folder, shapes)
    return shapes


def _qwen3_tts(variant: str, size: str) -> Callable[[Path], Shapes]:
    return lambda folder: _write_qwen3_tts(folder, variant, size)


def _qwen2_5_omni(sizes: published_qwen2_5_omni.Sizes) -> Callable[[Path], Shapes]:
    return lambda folder: _write_qwen2_5_omni(folder, sizes)


PUBLISHED = [
    Published("Qwen3-TTS-12Hz-1.7B-CustomVoice", QWEN3_TTS, _qwen3_tts("custom_voice", "1b7")),
    Published("Qwen3-TTS-12Hz-1.7B-VoiceDesign", QWEN3_TTS, _qwen3_tts("voice_design", "1b7")),
    Published("Qwen3-TTS-12Hz-1.7B-Base", QWEN3_TTS, _qwen3_tts("base", "1b7")),
    Published("Qwen3-TTS-12Hz-0.6B-CustomVoice", QWEN3_TTS, _qwen3_tts("custom_voice", "0b6")),
    Published("Qwen3-TTS-12Hz-0.6B-Base", QWEN3_TTS, _qwen3_tts("base", "0b6")),
    Published("Qwen3-Omni-30B-A3B-Instruct", QWEN3_OMNI, _write_qwen3_omni),
    Published(
        "Qwen2.5-Omni-7B", QWEN2_5_OMNI, _qwen2_5_omni(published_qwen2_5_omni.QWEN2_5_OMNI_7B)
    ),
    Published(
        "Qwen2.5-Omni-3B", QWEN2_5_OMNI, _qwen2_5_omni(published_qwen2_5_omni.QWEN2_5_OMNI_3B)
    ),
]


class BuiltError(Exception):
    """Ends the building of a core as soon as its model has its weights.

    Attributes:
        model: The model, on the meta device.
        loaded: The parameters that were given weights.
    """

    def __init__(self, model: torch.nn.Module, loaded: set[str]) -> None:
        super().__init__("There is a model, but no core.")
        self.model = model
        self.loaded = loaded


@contextmanager
def models_without_memory(shapes: Shapes) -> Iterator[None]:
    """Lets engine cores get as far as their model, and raise `BuiltError` with it."""

    def build(vllm_config: VllmConfig) -> Any:
        process_groups.make_missing(vllm_config)
        dtype = vllm_config.model_config.dtype
        with (
            set_current_vllm_config(vllm_config),
            set_default_torch_dtype(dtype),
            torch.device("meta"),
        ):
            model = initialize_model(vllm_config=vllm_config)
            weights = ((name, torch.empty(shape)) for name, shape in shapes.items())
            loaded = model.load_weights(weights)
        raise BuiltError(model, loaded)

    with mock.patch("engine.core._core", build):
        yield
