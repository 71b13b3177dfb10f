"""What a caller asks of the engine, and what the engine says about itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.errors import InvalidRequestError
from engine.text_input import TextInput
from engine.timeline import RequestTimes

LARGEST_SEED = 2**63 - 1
"""Seeds are what the samplers of every stage take."""


@dataclass(frozen=True, slots=True)
class SpeechParameters:
    """How the text is to be spoken.

    Attributes:
        voice: A voice name of the pipeline; None means its default.
        speed: 0.25 to 4, where 1 is the voice's own pace.
        seed: From 0 to LARGEST_SEED; makes the output repeatable; None draws one.
        temperature: Sampling temperature from 0 to 2; None means the pipeline's default.
        instructions: Style prompt, for pipelines that follow one.
        language: BCP 47 tag, for pipelines with several; None lets the pipeline choose.
        reference_audio: The bytes of an audio file with the voice to speak with, for pipelines
            that clone one.
        reference_text: What is said in it; None: only the sound of the voice is taken.
        whole_text: Whether the model may read the whole text before it begins to speak; otherwise
            it speaks as the text comes. For pipelines that know both.
    """

    voice: str | None = None
    speed: float = 1.0
    seed: int | None = None
    temperature: float | None = None
    instructions: str | None = None
    language: str | None = None
    reference_audio: bytes | None = field(default=None, repr=False)
    reference_text: str | None = None
    whole_text: bool = False

    def __post_init__(self) -> None:
        """Checks ranges that hold for every pipeline."""
        if not (math.isfinite(self.speed) and 0.25 <= self.speed <= 4.0):
            raise InvalidRequestError(
                "speed", f"speed is {self.speed!r}; it must be a number from 0.25 to 4.0."
            )
        if self.seed is not None and not 0 <= self.seed <= LARGEST_SEED:
            raise InvalidRequestError(
                "seed", f"seed is {self.seed!r}; it must be from 0 to {LARGEST_SEED}."
            )
        hot = self.temperature
        if hot is not None and not (math.isfinite(hot) and 0.0 <= hot <= 2.0):
            raise InvalidRequestError(
                "temperature", f"temperature is {hot!r}; it must be a number from 0 to 2."
            )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a client's function that the Thinker asked for.

    Attributes:
        call_id: Names the call; its result refers to it.
        name: The function.
        arguments: Its arguments as a JSON text.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AudioContent:
    """Sound in a message, for Thinkers that hear. It is itself and equals no other.

    Attributes:
        samples: float32 in [-1, 1], mono, shape [samples]; nobody changes them.
        sample_rate: Samples a second.
    """

    samples: npt.NDArray[np.float32]
    sample_rate: int = 16_000


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PictureContent:
    """A picture in a message, for Thinkers that see. It is itself and equals no other.

    Attributes:
        pixels: uint8, red, green and blue, shape [height, width, 3]; nobody changes them.
    """

    pixels: npt.NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        text: What is said, or a tool's result.
        sounds: What is heard before the text is read; only where the pipeline hears.
        pictures: What is seen before that; only where the pipeline sees.
        tool_calls: Calls that an assistant's message asked for.
        tool_call_id: The call that a tool's message answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    sounds: tuple[AudioContent, ...] = ()
    pictures: tuple[PictureContent, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the client offers.

    Attributes:
        name: Its name.
        description: What it does, for the Thinker.
        parameters: JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chat:
    """What a Thinker answers.

    Attributes:
        messages: The conversation so far, the oldest first.
        tools: Functions that may be called.
        tool_choice: `auto`, `none`, `required`, or a function's name.
        max_tokens: The most tokens of the answer; None leaves it to the deployment.
        temperature: Sampling temperature; None leaves it to the pipeline.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class OmniRequest:
    """One request.

    Attributes:
        request_id: Unique among live requests.
        text: What to speak; on routes that begin at a Thinker it stays unused.
        parameters: How to speak it.
        route: The pipeline's way for this request, `speech` or (with a Thinker) `chat`, where
            the answer comes as text and speech, or `chat_text`, as text alone.
        chat: What the Thinker answers, on routes that begin there.
        session: The duplex session this belongs to; a newer epoch of it fences older ones.
        tenant: Whose fair turn this takes in the waiting line (an API key's digest, say).
        deadline: Seconds from submission after which the request is ended; None means the
            deployment's default.
        times: Where its time went; the engine fills it in.
    """

    request_id: str
    text: TextInput
    parameters: SpeechParameters = field(default_factory=SpeechParameters)
    session: str | None = None
    tenant: str = ""
    deadline: float | None = None
    route: str = "speech"
    chat: Chat | None = None
    times: RequestTimes = field(default_factory=RequestTimes, compare=False)


@dataclass(frozen=True, slots=True)
class VoiceDescription:
    """One voice a client may name.

    Attributes:
        name: What `SpeechParameters.voice` takes.
        description: What it is, honestly, in one sentence.
        language: BCP 47 tag.
        aliases: Other names that mean this voice.
        cloned: Whether it is that of a request's reference audio, without which it has no sound.
    """

    name: str
    description: str
    language: str
    aliases: tuple[str, ...] = ()
    cloned: bool = False


@dataclass(frozen=True, slots=True)
class TextReport:
    """What a quick look at a text says before any of it is spoken.

    Attributes:
        speakable: Whether anything in it can be spoken.
        left_out: Distinct characters that will be left out.
    """

    speakable: bool
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PipelineDescription:
    """What clients may know about the pipeline.

    Attributes:
        name: The pipeline's name, also a model id.
        models: Model ids that `/v1/models` lists.
        voices: The voices, the default first.
        sample_rate: Samples a second of the audio chunks.
        word_timings: Whether audio chunks carry word timings.
        routes: The ways that requests may take.
        hears: Whether the Thinker takes the user's sound itself, as `ChatMessage.sounds`.
        sees: Whether the Thinker takes pictures, as `ChatMessage.pictures`.
        sound_window: Where it hears: seconds of a sound that are encoded apart, so that a turn's
            beginning may be encoded while it goes on; None: only whole sounds are.
    """

    name: str
    models: tuple[str, ...]
    voices: tuple[VoiceDescription, ...]
    sample_rate: int
    word_timings: bool
    routes: tuple[str, ...] = ("speech",)
    hears: bool = False
    sees: bool = False
    sound_window: float | None = None


class StageStatus(StrEnum):
    """The state of one stage."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """Whether the engine can serve, and each stage's state."""

    ready: bool
    stages: dict[str, StageStatus]
    running: int
    waiting: int
