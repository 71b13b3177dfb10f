"""What a caller asks of the engine, and what the engine says about itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.chunk import TextPayload
from engine.errors import InvalidRequestError
from engine.timeline import RequestTimes

MAXIMUM_PENDING_CHARACTERS = 1_000_000
"""Text that was written but not yet read by the pipeline; `TextInput.write` waits above it."""

LARGEST_SEED = 2**63 - 1
"""Seeds are what the samplers of every stage take."""


class TextInput:
    """The text of one request, written whole or as it comes.

    The writer is one task on the event loop; the reader is the engine. `write` waits while the
    engine has too much unread text, so that a fast writer cannot fill memory.
    """

    def __init__(self) -> None:
        """Makes an open, empty input."""
        self._pending: list[TextPayload] = []
        self._pending_characters = 0
        self._closed = False
        self._abandoned = False
        self._flushed = True
        self._room = asyncio.Event()
        self._room.set()
        self._on_change: Callable[[], None] | None = None

    @classmethod
    def whole(cls, text: str) -> TextInput:
        """An input that is complete from the start."""
        result = cls()
        result._pending.append(TextPayload(text))
        result._pending_characters = len(text)
        result._closed = True
        return result

    @property
    def closed(self) -> bool:
        """Whether no more text will come."""
        return self._closed

    async def write(self, text: str) -> None:
        """Adds text; waits while more than MAXIMUM_PENDING_CHARACTERS are unread.

        What is written for a request that has ended is dropped.

        Raises:
            ValueError: The input is closed already.
        """
        await self._room.wait()
        self._append(TextPayload(text))

    def flush(self) -> None:
        """Lets everything written so far be spoken to its end without waiting for more.

        Raises:
            ValueError: The input is closed already.
        """
        self._append(TextPayload("", flush=True))

    def close(self) -> None:
        """Ends the text. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._changed()

    def _append(self, payload: TextPayload) -> None:
        if self._closed:
            raise ValueError("The text input is closed; no more text can be written to it.")
        if self._abandoned or not (payload.text or self._can_flush(payload)):
            return
        self._flushed = payload.flush
        self._pending.append(payload)
        self._pending_characters += len(payload.text)
        if self._pending_characters > MAXIMUM_PENDING_CHARACTERS:
            self._room.clear()
        self._changed()

    def _can_flush(self, payload: TextPayload) -> bool:
        """Whether a flush would let anything be spoken that the one before it did not."""
        return payload.flush and not self._flushed

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def take(self) -> tuple[list[TextPayload], bool]:
        """Takes all text that was not taken yet; for the engine, on the event loop.

        Returns:
            The pieces in order and whether the text ends with them.
        """
        pieces, self._pending = self._pending, []
        return pieces, self._closed

    def consumed(self, characters: int) -> None:
        """Makes room for a waiting writer; for the engine, on the event loop."""
        self._pending_characters -= characters
        if self._pending_characters <= MAXIMUM_PENDING_CHARACTERS:
            self._room.set()

    def abandon(self) -> None:
        """Says that nobody will read on: a waiting writer goes on, its text is dropped."""
        self._abandoned = True
        self._pending.clear()
        self._room.set()

    def listen(self, on_change: Callable[[], None]) -> None:
        """Names the engine's wake-up, called on the event loop whenever text was added."""
        self._on_change = on_change


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


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        text: What is said, or a tool's result.
        sounds: What is heard before the text is read; only where the pipeline hears.
        tool_calls: Calls that an assistant's message asked for.
        tool_call_id: The call that a tool's message answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    sounds: tuple[AudioContent, ...] = ()


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
    """

    name: str
    description: str
    language: str
    aliases: tuple[str, ...] = ()


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
    """

    name: str
    models: tuple[str, ...]
    voices: tuple[VoiceDescription, ...]
    sample_rate: int
    word_timings: bool
    routes: tuple[str, ...] = ("speech",)
    hears: bool = False


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
