"""The effective settings of a session: every default filled in, changed only as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from app.audio.wire_formats import WireFormat
from app.realtime.failure import EventError
from app.realtime.session_schema import (
    AudioFormatPatch,
    FunctionTool,
    InputPatch,
    Modality,
    NamedFunction,
    NoiseReduction,
    OutputPatch,
    SemanticDetection,
    ServerDetection,
    SessionPatch,
    ToolChoice,
    Transcription,
)

SessionKind = Literal["realtime", "transcription"]

_PLAIN = (
    "instructions",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "truncation",
    "reasoning",
    "tracing",
    "prompt",
)
"""Keys of a patch that are fields of the same name here."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """What holds for a session, or for one response of it.

    Attributes:
        kind: A conversation, or transcription alone.
        model: What the client called the model; fixed for the session.
        voice: What the client called the voice.
        modality: Whether answers are heard or read.
        instructions: The system prompt.
        tools: Functions that the client offers.
        tool_choice: Whether they may or must be called.
        parallel_tool_calls: Echoed.
        max_output_tokens: Tokens of an answer, or `inf`.
        truncation: Echoed.
        tracing: Echoed.
        prompt: Echoed.
        reasoning: Echoed.
        include: Echoed.
        input_format: The format of the user's sound.
        transcription: Whether the client wants to be told what was heard.
        noise_reduction: Echoed.
        detection: How the end of a turn is found; None leaves it to the client.
        output_format: The format of the answer's sound.
        speed: 0.25 to 1.5.
    """

    model: str
    voice: str
    kind: SessionKind = "realtime"
    modality: Modality = "audio"
    instructions: str = ""
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | Literal["inf"] = "inf"
    truncation: str | Mapping[str, Any] = "auto"
    tracing: str | Mapping[str, Any] | None = None
    prompt: Mapping[str, Any] | None = None
    reasoning: Mapping[str, Any] | None = None
    include: tuple[str, ...] | None = None
    input_format: WireFormat = WireFormat.PCM
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    detection: ServerDetection | SemanticDetection | None = field(default_factory=ServerDetection)
    output_format: WireFormat = WireFormat.PCM
    speed: float = 1.0

    def updated(self, patch: SessionPatch, *, voice_is_fixed: bool) -> SessionConfig:
        """The settings after a client's change; all of it or nothing.

        Args:
            patch: What the client wants different.
            voice_is_fixed: Whether the conversation holds sound in this voice.

        Raises:
            EventError: A value cannot be changed to that.
        """
        if patch.type is not None and patch.type != self.kind:
            message = f"A {self.kind} session cannot become a {patch.type} session."
            raise EventError(message, "invalid_value", "session.type")
        changed: dict[str, Any] = {
            name: value for name in _PLAIN if patch.given(name) for value in [_of(patch, name)]
        }
        if patch.output_modalities is not None:
            changed["modality"] = one_modality(patch.output_modalities, "session.")
        if patch.tools is not None:
            changed["tools"] = tuple(patch.tools)
        if patch.given("include"):
            changed["include"] = None if patch.include is None else tuple(patch.include)
        result = replace(self, **changed)
        if patch.audio is not None and patch.audio.input is not None:
            result = result.with_input(patch.audio.input)
        if patch.audio is not None and patch.audio.output is not None:
            result = result.with_output(patch.audio.output)
        if voice_is_fixed and result.voice != self.voice:
            raise EventError(
                "Cannot update a conversation's voice if assistant audio is present.",
                "cannot_update_voice",
                "session.audio.output.voice",
            )
        return result

    def with_input(self, patch: InputPatch) -> SessionConfig:
        """With the changes of `audio.input`."""
        changed: dict[str, Any] = {}
        if patch.format is not None:
            changed["input_format"] = WireFormat(patch.format.type)
        if patch.given("transcription"):
            changed["transcription"] = patch.transcription
        if patch.given("noise_reduction"):
            changed["noise_reduction"] = patch.noise_reduction
        if patch.given("turn_detection"):
            changed["detection"] = patch.turn_detection
        return replace(self, **changed)

    def with_output(self, patch: OutputPatch) -> SessionConfig:
        """With the changes of `audio.output`."""
        return replace(
            self,
            output_format=_format(patch.format, self.output_format),
            voice=self.voice if patch.voice_name is None else patch.voice_name,
            speed=self.speed if patch.speed is None else patch.speed,
        )

    def as_wire(self, session_id: str, expires_at: int) -> dict[str, Any]:
        """The `session` of `session.created` and `session.updated`; everything is in it."""
        head: dict[str, Any] = {
            "type": self.kind,
            "object": f"realtime.{'transcription_' if self.kind == 'transcription' else ''}session",
            "id": session_id,
            "expires_at": expires_at,
            "include": None if self.include is None else list(self.include),
        }
        if self.kind == "transcription":
            return {**head, "audio": {"input": self._input()}}
        return {
            **head,
            "model": self.model,
            "output_modalities": [self.modality],
            "instructions": self.instructions,
            "tools": [tool.model_dump(exclude_none=True) for tool in self.tools],
            "tool_choice": tool_choice_as_wire(self.tool_choice),
            "max_output_tokens": self.max_output_tokens,
            "truncation": self.truncation,
            "tracing": self.tracing,
            "prompt": self.prompt,
            "audio": {"input": self._input(), "output": self.output_as_wire(speed=True)},
            **_present(parallel_tool_calls=self.parallel_tool_calls, reasoning=self.reasoning),
        }

    def output_as_wire(self, *, speed: bool = False) -> dict[str, Any]:
        """`audio.output`; responses have it without the speed."""
        wire: dict[str, Any] = {"format": self.output_format.as_wire(), "voice": self.voice}
        return {**wire, "speed": self.speed} if speed else wire

    def _input(self) -> dict[str, Any]:
        return {
            "format": self.input_format.as_wire(),
            "transcription": _dumped(self.transcription),
            "noise_reduction": _dumped(self.noise_reduction),
            "turn_detection": _detection_as_wire(self.detection),
        }


def one_modality(modalities: list[Modality], prefix: str) -> Modality:
    """The one modality of an answer; both at once, as beta clients say it, means sound.

    Raises:
        EventError: The same one twice.
    """
    if len(modalities) == 2:
        if set(modalities) == {"text", "audio"}:
            return "audio"
        param = f"{prefix}output_modalities"
        raise EventError("Supported combinations: ['text'] and ['audio'].", "invalid_value", param)
    return modalities[0]


def tool_choice_as_wire(choice: ToolChoice) -> str | dict[str, Any]:
    """The choice as clients see it."""
    return choice.model_dump() if isinstance(choice, NamedFunction) else choice


def _of(patch: SessionPatch, name: str) -> Any:
    return patch.__dict__[name]


def _format(patch: AudioFormatPatch | None, otherwise: WireFormat) -> WireFormat:
    return otherwise if patch is None else WireFormat(patch.type)


def _dumped(part: Transcription | NoiseReduction | None) -> dict[str, Any] | None:
    return None if part is None else part.model_dump(exclude_none=True)


def _detection_as_wire(
    detection: ServerDetection | SemanticDetection | None,
) -> dict[str, Any] | None:
    return None if detection is None else detection.model_dump()


def _present(**values: Any) -> dict[str, Any]:
    """The values that are something: where the protocol knows no null, the key is left out."""
    return {key: value for key, value in values.items() if value is not None}
