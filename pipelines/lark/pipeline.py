"""The topology of `lark`: text, Talker, Code2Wav, client.

Importing this module is cheap; torch and vLLM are imported when a stage is built.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from engine import ConfigurationError, PipelineDescription, SpeechParameters
from engine.pipeline_config import (
    CLIENT,
    EdgeConfig,
    Models,
    PipelineConfig,
    StageConfig,
    StageKind,
)
from pipelines.costs import characters, one, samples
from pipelines.lark.text import inspect_text
from pipelines.lark.voices import VOICES, find_voice

if TYPE_CHECKING:
    from engine.adapter import Adapter
    from engine.deploy_config import StageDeployment
    from engine.stage import Replica
    from pipelines.lark.codec import Codec
    from pipelines.lark.text import Phonemizer

FOLDER = Path(__file__).parent
WEIGHTS = FOLDER / "weights"
WEIGHT_FILES = ("config.json", "talker.safetensors", "code2wav.safetensors")
SAMPLE_RATE = 24_000
LOOKAHEAD = 4

TEXT_CAPACITY = 4_000_000
"""Characters between the client and the Talker; `TextInput` bounds a writer long before."""

CODE_CAPACITY = 64
"""Steps that the Talker may be ahead of Code2Wav: about four seconds of speech."""

AUDIO_CAPACITY = 12 * SAMPLE_RATE
LONGEST_CHUNK = 4 * SAMPLE_RATE
"""Samples; a chunk of one slow phoneme after the other stays below."""


def weights_folder(model: str | None) -> Path:
    """The folder of the weights: those in the package unless another folder is named.

    Raises:
        ConfigurationError: The folder lacks a file.
    """
    folder = WEIGHTS if model is None else Path(model)
    for name in WEIGHT_FILES:
        if not (folder / name).is_file():
            raise ConfigurationError(
                f"{folder} holds no {name}; it must be a folder with the weights of this pipeline."
            )
    return folder


def resolve(model: str | None, cache: Path) -> Models:
    """Both stages load from one folder; nothing of it is cached."""
    del cache
    folder = weights_folder(model)
    return {"talker": folder, "code2wav": folder}


def describe(models: Models) -> PipelineDescription:
    """What clients may know."""
    del models
    voices = tuple(voice.description for voice in VOICES)
    return PipelineDescription("lark", ("lark",), voices, SAMPLE_RATE, word_timings=True)


def check(parameters: SpeechParameters) -> None:
    """Refuses a voice that does not exist."""
    find_voice(parameters.voice)


def build_talker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with the Talker."""
    from vllm import ModelRegistry

    from engine.autoregressive import AutoregressiveReplica
    from engine.core import CoreSettings
    from pipelines.lark.configuration import register_configuration
    from pipelines.lark.talker import LarkTalker

    register_configuration()
    ModelRegistry.register_model("LarkTalker", LarkTalker)
    return AutoregressiveReplica(CoreSettings.of(folder, deployment, conditioned=True))


def build_code2wav(folder: Path, deployment: StageDeployment) -> Replica:
    """One batched decoder."""
    from engine.device import require_torch_device
    from engine.generation import GenerationReplica
    from pipelines.lark.code2wav import LarkCode2Wav
    from pipelines.lark.decoder import load_code2wav

    require_torch_device(deployment.device)
    decoder = load_code2wav(folder, deployment.device).decoder
    return GenerationReplica.of(LarkCode2Wav(decoder), deployment)


@functools.cache
def _phonemizer() -> Phonemizer:
    from pipelines.lark.text import Phonemizer

    return Phonemizer()


@functools.cache
def _codec(folder: Path) -> Codec:
    from pipelines.lark.decoder import load_code2wav

    return load_code2wav(folder).codec


def text_to_phonemes(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into the Talker."""
    del models
    from pipelines.lark.adapters import TextToPhonemes

    return TextToPhonemes(_phonemizer(), find_voice(parameters.voice).index, LOOKAHEAD)


def codes_to_frames(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into Code2Wav."""
    from pipelines.lark.adapters import CodesToFrames

    return CodesToFrames(_codec(models["code2wav"]), parameters.speed)


TALKER = StageConfig("talker", StageKind.AUTOREGRESSIVE, build_talker)
CODE2WAV = StageConfig("code2wav", StageKind.GENERATION, build_code2wav)


def voice_edges(routes: tuple[str, ...]) -> tuple[EdgeConfig, ...]:
    """The edges from the Talker to the client, for pipelines that speak with this voice."""
    return (
        EdgeConfig("talker", "code2wav", codes_to_frames, CODE_CAPACITY, 1, one, routes),
        EdgeConfig("code2wav", CLIENT, None, AUDIO_CAPACITY, LONGEST_CHUNK, samples, routes),
    )


TEXT_EDGE = EdgeConfig(CLIENT, "talker", text_to_phonemes, TEXT_CAPACITY, 1, characters)
"""The client's own text into the Talker."""

PIPELINE = PipelineConfig(
    name="lark",
    stages=(TALKER, CODE2WAV),
    edges=(TEXT_EDGE, *voice_edges(("speech",))),
    describe=describe,
    resolve=resolve,
    check=check,
    inspect=inspect_text,
    warm_up_text="Hello there, and welcome. This is how I sound.",
    deploy=FOLDER / "deploy.yaml",
)
