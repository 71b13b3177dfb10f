"""The topology of `qwen2_5_omni`: Thinker, Talker, and Token2Wav in two stages.

Three routes: `chat` answers in text and speech, `chat_text` in text alone, and `speech` speaks the
client's own text. Importing this module is cheap; torch and vLLM are imported when a stage is
built.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import (
    InvalidRequestError,
    PipelineDescription,
    SpeechParameters,
    VoiceDescription,
)
from engine.chunk import TextPayload, ToolCallPayload, UsagePayload
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
from pipelines.qwen2_5_omni.hearing import hearing_of, sound_window
from pipelines.qwen2_5_omni.stages import (
    build_denoiser,
    build_talker,
    build_thinker,
    build_vocoder,
)

if TYPE_CHECKING:
    from engine.adapter import Adapter

FOLDER = Path(__file__).parent
NAME = "qwen2_5_omni"
SAMPLE_RATE = 24_000
TEXT_CAPACITY = 4_000_000
LARGEST_TEXT = 1_000_000
"""Characters of one piece of text, as clients may write them."""

UNHEARD_TEXT = 4_096
LONGEST_DELTA = 64
"""Characters that the Thinker may be ahead of a client, and that one token may become."""

POSITION_CAPACITY = 16_384
POSITION_RESERVE = 2_048
"""Positions of the Thinker that the Talker has not read; the most in one step."""

CODE_CAPACITY = 200
"""Codes that the Talker may be ahead of the denoiser: four seconds."""

FRAME_CAPACITY = 1_200
LARGEST_SEGMENT = 600
"""Mel frames that wait for the vocoder, and the most of one segment in a deployment."""

AUDIO_CAPACITY = 12 * SAMPLE_RATE
LONGEST_CHUNK = 4 * SAMPLE_RATE
"""Samples; the vocoder's largest chunk must be below."""


def resolve(model: str | None, cache: Path) -> Models:
    """The folder of a checkpoint: a folder here, or one of the hub.

    Raises:
        ConfigurationError: None was named, or it is not one that this pipeline serves.
    """
    from engine.weight_files import weight_files
    from pipelines.qwen2_5_omni.checkpoint import load_speakers

    folder = checkpoint_folder(NAME, model, cache)
    weight_files(folder)
    load_speakers(folder)
    return dict.fromkeys(("thinker", "talker", "denoiser", "vocoder"), folder)


@functools.cache
def _voices(folder: Path) -> tuple[str, ...]:
    from pipelines.qwen2_5_omni.checkpoint import load_speakers

    return tuple(load_speakers(folder))


def describe(models: Models) -> PipelineDescription:
    """What clients may know."""
    folder = models["talker"]
    voices = tuple(
        VoiceDescription(name, f"The checkpoint's speaker {name}.", "en")
        for name in _voices(folder)
    )
    return PipelineDescription(
        name=NAME,
        models=(NAME, model_id(folder)),
        voices=voices,
        sample_rate=SAMPLE_RATE,
        word_timings=False,
        routes=("speech", "chat", "chat_text"),
        hears=True,
        sees=True,
        sound_window=sound_window(folder) / MEL_FRAMES_PER_SECOND,
    )


def check(parameters: SpeechParameters) -> None:
    """Refuses what no checkpoint can do.

    Raises:
        InvalidRequestError: The speed is not 1.
    """
    if parameters.speed != 1.0:
        raise InvalidRequestError(
            "speed", "This model speaks at its own pace; leave speed out, or ask for it in words."
        )


def check_models(models: Models, parameters: SpeechParameters) -> None:
    """Refuses a voice that the checkpoint does not have.

    Raises:
        InvalidRequestError: It is unknown; the message names those that there are.
    """
    voices = _voices(models["talker"])
    if parameters.voice not in (None, *voices):
        raise InvalidRequestError(
            "voice", f"There is no voice {parameters.voice!r}; there are: {', '.join(voices)}."
        )


def chat_to_prompt(models: Models, parameters: SpeechParameters, *, speaks: bool) -> Adapter:
    """The adapter of a conversation into the Thinker."""
    del parameters
    from pipelines.qwen.prompts import ChatToPrompt
    from pipelines.qwen2_5_omni.thinker import SYSTEM_PROMPT

    return ChatToPrompt(hearing_of(models["thinker"]), speaks=speaks, system=SYSTEM_PROMPT)


def text_to_prompt(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter of a text to be spoken into the Thinker."""
    del parameters
    from pipelines.qwen2_5_omni.thinker import TextToPrompt

    return TextToPrompt(hearing_of(models["thinker"]))


def states_to_rows(models: Models, parameters: SpeechParameters, *, replied: bool) -> Adapter:
    """The adapter into the Talker."""
    from pipelines.qwen2_5_omni.adapters import StatesToRows
    from pipelines.qwen2_5_omni.talker_tokens import tokens_of

    voice = parameters.voice or _voices(models["talker"])[0]
    return StatesToRows(tokens_of(models["talker"], voice), replied=replied)


def codes_to_units(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into the denoiser."""
    del parameters
    from pipelines.qwen2_5_omni.adapters import CodesToUnits
    from pipelines.qwen2_5_omni.talker_tokens import end_tokens

    return CodesToUnits(end_tokens(models["talker"]))


def mel_to_frames(models: Models, parameters: SpeechParameters) -> Adapter:
    """The adapter into the vocoder."""
    del models, parameters
    from pipelines.qwen2_5_omni.adapters import MelToFrames

    return MelToFrames()


def positions(payload: Any) -> int:
    """The cost of the Thinker's states on an edge."""
    return len(payload.token_ids)


def frames(payload: Any) -> int:
    """The cost of mel frames on an edge."""
    return len(payload.frames)


def _edges() -> tuple[EdgeConfig, ...]:
    # Not imported at the top: it would bring torch along.
    from engine.hidden_states import HiddenStatesPayload

    chat, spoken = ("chat",), ("speech", "chat")
    heard = functools.partial(chat_to_prompt, speaks=True)
    read = functools.partial(chat_to_prompt, speaks=False)
    states = (HiddenStatesPayload,)
    words = (TextPayload, ToolCallPayload, UsagePayload)

    def to_talker(routes: tuple[str, ...], replied: bool) -> EdgeConfig:
        adapter = functools.partial(states_to_rows, replied=replied)
        room = POSITION_CAPACITY, POSITION_RESERVE
        return EdgeConfig("thinker", "talker", adapter, *room, positions, routes, states)

    return (
        EdgeConfig(CLIENT, "thinker", text_to_prompt, TEXT_CAPACITY, LARGEST_TEXT, characters),
        EdgeConfig(CLIENT, "thinker", heard, 1, 1, one, chat),
        EdgeConfig(CLIENT, "thinker", read, 1, 1, one, ("chat_text",)),
        EdgeConfig(
            "thinker",
            CLIENT,
            None,
            UNHEARD_TEXT,
            LONGEST_DELTA,
            characters,
            ("chat", "chat_text"),
            words,
        ),
        to_talker(("speech",), replied=True),
        to_talker(chat, replied=False),
        EdgeConfig("talker", "denoiser", codes_to_units, CODE_CAPACITY, 1, one, spoken),
        EdgeConfig(
            "denoiser", "vocoder", mel_to_frames, FRAME_CAPACITY, LARGEST_SEGMENT, frames, spoken
        ),
        EdgeConfig("vocoder", CLIENT, None, AUDIO_CAPACITY, LONGEST_CHUNK, samples, spoken),
    )


PIPELINE = PipelineConfig(
    name=NAME,
    stages=(
        StageConfig("thinker", StageKind.AUTOREGRESSIVE, build_thinker),
        StageConfig("talker", StageKind.AUTOREGRESSIVE, build_talker),
        StageConfig("denoiser", StageKind.DIFFUSION, build_denoiser),
        StageConfig("vocoder", StageKind.GENERATION, build_vocoder),
    ),
    edges=_edges(),
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
