"""The topology of `qwen3_omni`: a Thinker that hears, a Talker that reads its states, Code2Wav.

Two routes: `chat` answers in text and speech, `chat_text` in text alone. There is no `speech`: the
Talker speaks what its Thinker thinks. Importing this module is cheap; torch and vLLM are imported
when a stage is built.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from engine import (
    InvalidRequestError,
    PipelineDescription,
    SpeechParameters,
    TextPayload,
    ToolCallPayload,
    UsagePayload,
    VoiceDescription,
)
from engine.hidden_states import HiddenStatesPayload
from engine.pipeline_config import (
    CLIENT,
    EdgeConfig,
    Models,
    PipelineConfig,
    StageConfig,
    StageKind,
)
from pipelines.costs import characters, one, samples
from pipelines.qwen.files import checkpoint_folder, inspect_text, model_id
from pipelines.qwen.hearing_config import MEL_FRAMES_PER_SECOND, hearing_config, seeing
from pipelines.qwen3_omni.configuration import Checkpoint, read_checkpoint
from pipelines.qwen3_omni.hearing import hearing_of

if TYPE_CHECKING:
    from engine.adapter import Adapter
    from engine.deploy_config import StageDeployment
    from engine.stage import Replica

FOLDER = Path(__file__).parent
NAME = "qwen3_omni"

MOST_SOUNDS = 64
MOST_PICTURES = 64
"""Sounds and pictures in one conversation."""

UNHEARD_TEXT = 4_096
LONGEST_DELTA = 64
"""Characters that one token may become."""

STATE_CAPACITY = 4_096
LARGEST_PROMPT_STEP = 2_048
"""Positions of the Thinker: how far it may be ahead of the Talker, and the most in one step."""

CODE_CAPACITY = 64
"""Frames that the Talker may be ahead of Code2Wav: about five seconds of speech."""

SAMPLE_RATE = 24_000
AUDIO_CAPACITY = 12 * SAMPLE_RATE
LONGEST_CHUNK = 4 * SAMPLE_RATE
"""Samples; the deployment's largest chunk must be below."""


def resolve(model: str | None, cache: Path) -> Models:
    """The folder of a checkpoint, here or fetched from the hub, for all stages.

    Raises:
        ConfigurationError: None was named, or it is not one that this pipeline speaks.
    """
    folder = checkpoint_folder(NAME, model, cache)
    read_checkpoint(folder)
    return {"thinker": folder, "talker": folder, "code2wav": folder}


@functools.cache
def checkpoint_of(folder: Path) -> Checkpoint:
    """A folder's checkpoint, read once."""
    return read_checkpoint(folder)


def describe(models: Models) -> PipelineDescription:
    """What clients may know."""
    folder = models["talker"]
    voices = tuple(
        VoiceDescription(name, f"The voice {name.capitalize()} of the checkpoint.", "mul")
        for name in checkpoint_of(folder).speakers
    )
    return PipelineDescription(
        name=NAME,
        models=(NAME, model_id(folder)),
        voices=voices,
        sample_rate=SAMPLE_RATE,
        word_timings=False,
        routes=("chat", "chat_text"),
        hears=True,
        sees=True,
        sound_window=checkpoint_of(folder).sound_window / MEL_FRAMES_PER_SECOND,
    )


def check(parameters: SpeechParameters) -> None:
    """Refuses what no checkpoint can do.

    Raises:
        InvalidRequestError: The speed is not 1.
    """
    if parameters.speed != 1.0:
        raise InvalidRequestError("speed", "This model speaks at its own pace; leave speed out.")


def check_models(models: Models, parameters: SpeechParameters) -> None:
    """Refuses what this checkpoint cannot do.

    Raises:
        InvalidRequestError: The voice is unknown.
    """
    speaker_of(models, parameters)


def speaker_of(models: Models, parameters: SpeechParameters) -> int:
    """The codec token of a request's voice.

    Raises:
        InvalidRequestError: The voice is unknown.
    """
    speakers = checkpoint_of(models["talker"]).speakers
    voice = next(iter(speakers)) if parameters.voice is None else parameters.voice.lower()
    if voice not in speakers:
        raise InvalidRequestError(
            "voice", f"There is no voice {parameters.voice!r}; there are {', '.join(speakers)}."
        )
    return speakers[voice]


def build_thinker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with vLLM's own model of the Thinker.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    from vllm import ModelRegistry
    from vllm.tokenizers import get_tokenizer

    from engine.core import CoreSettings
    from engine.text_replica import TextReplica
    from pipelines.qwen3_omni.thinker_model import ARCHITECTURE, Qwen3OmniThinker, configure
    from pipelines.qwen3_omni.weights import check_weights

    check_weights(folder, "thinker.")
    ModelRegistry.register_model(ARCHITECTURE, Qwen3OmniThinker)
    settings = CoreSettings.of(
        folder,
        deployment,
        conditioned=False,
        hidden_layer=checkpoint_of(folder).accept_hidden_layer,
        media={"audio": MOST_SOUNDS, "image": MOST_PICTURES},
        weights=("thinker.",),
        configure=configure,
    )
    return TextReplica(settings, get_tokenizer(str(folder)))


def build_talker(folder: Path, deployment: StageDeployment) -> Replica:
    """One vLLM engine core with the Talker and its code predictor.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    from vllm import ModelRegistry

    from engine.autoregressive import AutoregressiveReplica
    from engine.core import CoreSettings
    from pipelines.qwen3_omni.sampling import sampling_of
    from pipelines.qwen3_omni.talker import ARCHITECTURE, WEIGHTS, Qwen3OmniTalker, configure
    from pipelines.qwen3_omni.weights import check_weights

    found = check_weights(folder, "talker.")
    ModelRegistry.register_model(ARCHITECTURE, Qwen3OmniTalker)
    settings = CoreSettings.of(
        folder,
        deployment,
        conditioned=True,
        weights=WEIGHTS,
        configure=functools.partial(configure, quantised=found.quantised),
    )
    return AutoregressiveReplica(settings, sampling_of)


def build_code2wav(folder: Path, deployment: StageDeployment) -> Replica:
    """One batched decoder.

    Raises:
        ConfigurationError: A weight is missing, unknown or of another shape; it is named.
    """
    import torch

    from engine.compiled import resolve_dtype
    from engine.device import require_torch_device
    from engine.generation import GenerationReplica
    from pipelines.qwen3_omni.code2wav import Qwen3OmniCode2Wav

    require_torch_device(deployment.device)
    dtypes = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    dtype = dtypes[resolve_dtype(deployment.dtype, deployment.device)]
    module = Qwen3OmniCode2Wav.load(folder, dtype, torch.device(deployment.device))
    return GenerationReplica.of(module, deployment)


def chat_to_prompt(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into a Thinker whose answer is spoken."""
    del parameters
    from pipelines.qwen.prompts import ChatToPrompt

    return ChatToPrompt(hearing_of(models["thinker"]), speaks=True)


def chat_to_written_prompt(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into a Thinker whose answer is only read."""
    del parameters
    from pipelines.qwen.prompts import ChatToPrompt

    return ChatToPrompt(hearing_of(models["thinker"]), speaks=False)


def states_to_rows(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into the Talker."""
    from pipelines.qwen3_omni.adapters import StatesToRows

    tokens = checkpoint_of(models["talker"]).tokens
    return StatesToRows(tokens, speaker_of(models, parameters))


def codes_to_frames(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into Code2Wav."""
    del models, parameters
    from pipelines.qwen3_omni.adapters import CodesToFrames

    return CodesToFrames()


def positions(payload: HiddenStatesPayload) -> int:
    """The cost of hidden states on an edge."""
    return len(payload.token_ids)


WRITTEN = (TextPayload, ToolCallPayload, UsagePayload)
SPOKEN, READ = ("chat",), ("chat_text",)

PIPELINE = PipelineConfig(
    name=NAME,
    stages=(
        StageConfig("thinker", StageKind.AUTOREGRESSIVE, build_thinker),
        StageConfig("talker", StageKind.AUTOREGRESSIVE, build_talker),
        StageConfig("code2wav", StageKind.GENERATION, build_code2wav),
    ),
    edges=(
        EdgeConfig(CLIENT, "thinker", chat_to_prompt, 1, 1, one, SPOKEN),
        EdgeConfig(CLIENT, "thinker", chat_to_written_prompt, 1, 1, one, READ),
        EdgeConfig(
            "thinker",
            CLIENT,
            None,
            UNHEARD_TEXT,
            LONGEST_DELTA,
            characters,
            SPOKEN + READ,
            carries=WRITTEN,
        ),
        EdgeConfig(
            "thinker",
            "talker",
            states_to_rows,
            STATE_CAPACITY,
            LARGEST_PROMPT_STEP,
            positions,
            SPOKEN,
            carries=(HiddenStatesPayload,),
        ),
        EdgeConfig("talker", "code2wav", codes_to_frames, CODE_CAPACITY, 1, one, SPOKEN),
        EdgeConfig("code2wav", CLIENT, None, AUDIO_CAPACITY, LONGEST_CHUNK, samples, SPOKEN),
    ),
    describe=describe,
    resolve=resolve,
    check=check,
    check_models=check_models,
    inspect=inspect_text,
    warm_up_text="Hello there.",
    deploy=FOLDER / "deploy.yaml",
    hearing=hearing_config(hearing_of),
    see=seeing(hearing_of),
)
