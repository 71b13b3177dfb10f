"""The topology of `qwen3_tts`: text, reference audio, Talker, Code2Wav, client.

Importing this module is cheap; torch and vLLM are imported when a stage is built.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from engine import (
    ConfigurationError,
    InvalidRequestError,
    PipelineDescription,
    SpeechParameters,
)
from engine.pipeline_config import (
    CLIENT,
    EdgeConfig,
    Models,
    PipelineConfig,
    StageConfig,
    StageKind,
)
from pipelines.costs import characters, one, samples
from pipelines.qwen.files import checkpoint_folder, inspect_text, model_id, read_json
from pipelines.qwen3_tts.configuration import (
    CODEC_FOLDER,
    Checkpoint,
    Variant,
    read_checkpoint,
)
from pipelines.qwen3_tts.voices import (
    check_parameters,
    describe_voices,
    find_language,
    find_speaker,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from engine.adapter import Adapter
    from engine.deploy_config import StageDeployment
    from engine.stage import Replica

FOLDER = Path(__file__).parent
NAME = "qwen3_tts"
ARCHITECTURE = "Qwen3TTSForConditionalGeneration"

TEXT_CAPACITY = 4_000_000
LARGEST_TEXT = 1_000_000
"""Characters of one piece of text, as clients may write them."""

CODE_CAPACITY = 64
"""Frames that the Talker may be ahead of Code2Wav: about five seconds of speech."""

SAMPLE_RATE = 24_000
AUDIO_CAPACITY = 12 * SAMPLE_RATE
LONGEST_CHUNK = 4 * SAMPLE_RATE
"""Samples; the deployment's largest chunk must be below."""


def resolve(model: str | None, cache: Path) -> Models:
    """The folders of a checkpoint: a folder here, or one of the hub.

    Raises:
        ConfigurationError: None was named, or it is not one that this pipeline speaks.
    """
    folder = checkpoint_folder(NAME, model, cache)
    read_checkpoint(folder)
    codec = folder / CODEC_FOLDER
    read_json(codec / "config.json")
    return {"reference": folder, "talker": folder, "code2wav": codec}


@functools.cache
def checkpoint_of(folder: Path) -> Checkpoint:
    """A folder's checkpoint, read once."""
    return read_checkpoint(folder)


def describe(models: Models) -> PipelineDescription:
    """What clients may know."""
    folder = models["talker"]
    voices = describe_voices(checkpoint_of(folder))
    config = read_json(models["code2wav"] / "config.json")
    rate = int(config.get("output_sample_rate", SAMPLE_RATE))
    return PipelineDescription(NAME, (NAME, model_id(folder)), voices, rate, word_timings=False)


def check(parameters: SpeechParameters) -> None:
    """Refuses what no checkpoint can do.

    Raises:
        InvalidRequestError: The speed is not 1.
    """
    if parameters.speed != 1.0:
        raise InvalidRequestError(
            "speed", "This model speaks at its own pace; leave speed out, or ask in instructions."
        )


def check_models(models: Models, parameters: SpeechParameters) -> None:
    """Refuses what this checkpoint cannot do."""
    check_parameters(checkpoint_of(models["talker"]), parameters)


def build_reference(folder: Path, deployment: StageDeployment) -> Replica:
    """The stage that hears reference audio; without a Base checkpoint it only hands text on.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    import torch

    from engine.device import require_torch_device
    from pipelines.qwen3_tts.reference_stage import ReferenceReplica
    from pipelines.qwen3_tts.reference_voice import VoiceEncoder

    encoder: VoiceEncoder | None = None
    if checkpoint_of(folder).variant is Variant.BASE:
        require_torch_device(deployment.device)
        device = torch.device(deployment.device)
        encoder = VoiceEncoder.load(folder, _tokenizer(folder), device)
    return ReferenceReplica(encoder, deployment.input_limit)


def build_talker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with Talker and code predictor.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    from vllm import ModelRegistry

    from engine.autoregressive import AutoregressiveReplica
    from engine.core import CoreSettings
    from pipelines.qwen3_tts.model_configuration import register_configuration
    from pipelines.qwen3_tts.sampling import SamplingDefaults
    from pipelines.qwen3_tts.talker import Qwen3TTSTalker
    from pipelines.qwen3_tts.talker_weights import check_talker_weights

    register_configuration()
    check_talker_weights(folder)
    ModelRegistry.register_model(ARCHITECTURE, Qwen3TTSTalker)
    settings = CoreSettings.of(folder, deployment, conditioned=True)
    return AutoregressiveReplica(settings, SamplingDefaults.of(folder).of_request)


def build_code2wav(folder: Path, deployment: StageDeployment) -> Replica:
    """One batched decoder.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    import torch

    from engine.compiled import resolve_dtype
    from engine.device import require_torch_device
    from engine.generation import GenerationReplica
    from pipelines.qwen3_tts.code2wav import Qwen3TTSCode2Wav

    require_torch_device(deployment.device)
    dtypes = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    dtype = dtypes[resolve_dtype(deployment.dtype, deployment.device)]
    module = Qwen3TTSCode2Wav.load(folder, dtype, torch.device(deployment.device))
    return GenerationReplica.of(module, deployment)


@functools.cache
def _tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    tokenizer = AutoTokenizer.from_pretrained(folder)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ConfigurationError(f"The tokenizer in {folder} is a {type(tokenizer).__name__}.")
    return tokenizer


def text_to_rows(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into the Talker."""
    from pipelines.qwen3_tts.adapters import (
        SpeechPlan,
        TextToRows,
        instruction_tokens,
        opening_tokens,
    )
    from pipelines.qwen3_tts.rows import RowMaker
    from pipelines.qwen3_tts.text_stream import TokenStream

    folder = models["talker"]
    checkpoint, tokenizer = checkpoint_of(folder), _tokenizer(folder)
    speaker = find_speaker(checkpoint, parameters.voice)
    heard = parameters.instructions if checkpoint.follows_instructions else None
    plan = SpeechPlan(
        maker=RowMaker(checkpoint),
        role=opening_tokens(tokenizer),
        instructions=instruction_tokens(tokenizer, heard),
        language=find_language(checkpoint, parameters.language, speaker),
        speaker=None if speaker is None else checkpoint.speakers[speaker],
        clones=parameters.reference_audio is not None,
        whole=parameters.whole_text,
    )
    return TextToRows(plan, TokenStream(tokenizer))


def codes_to_frames(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into Code2Wav."""
    del models, parameters
    from pipelines.qwen3_tts.adapters import CodesToFrames

    return CodesToFrames()


PIPELINE = PipelineConfig(
    name=NAME,
    stages=(
        StageConfig("reference", StageKind.GENERATION, build_reference),
        StageConfig("talker", StageKind.AUTOREGRESSIVE, build_talker),
        StageConfig("code2wav", StageKind.GENERATION, build_code2wav),
    ),
    edges=(
        EdgeConfig(CLIENT, "reference", None, TEXT_CAPACITY, 1, characters),
        EdgeConfig("reference", "talker", text_to_rows, TEXT_CAPACITY, LARGEST_TEXT, characters),
        EdgeConfig("talker", "code2wav", codes_to_frames, CODE_CAPACITY, 1, one),
        EdgeConfig("code2wav", CLIENT, None, AUDIO_CAPACITY, LONGEST_CHUNK, samples),
    ),
    describe=describe,
    resolve=resolve,
    check=check,
    check_models=check_models,
    clones=True,
    inspect=inspect_text,
    warm_up_text="Hello there.",
    deploy=FOLDER / "deploy.yaml",
)
