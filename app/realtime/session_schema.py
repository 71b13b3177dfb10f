"""The `session` of a client's `session.update`: every key may be left out."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from app.realtime.wire import Wire

Modality = Literal["text", "audio"]
MaximumTokens = Annotated[int, Field(ge=1, le=4096)] | Literal["inf"]


class AudioFormatPatch(Wire):
    """A format of audio: 16-bit samples at 24 kHz, or G.711 at 8 kHz."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"]
    rate: int | None = None

    @model_validator(mode="after")
    def _check_rate(self) -> AudioFormatPatch:
        expected = 24_000 if self.type == "audio/pcm" else 8_000
        if self.rate not in (None, expected):
            raise ValueError(f"the rate of {self.type} is {expected}.")
        return self


class Detection(Wire):
    """What both kinds of turn detection have."""

    create_response: bool = True
    interrupt_response: bool = True


class ServerDetection(Detection):
    """A turn ends after a silence of fixed length."""

    type: Literal["server_vad"] = "server_vad"
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    prefix_padding_ms: Annotated[int, Field(ge=0, le=5000)] = 300
    silence_duration_ms: Annotated[int, Field(ge=50, le=10_000)] = 500
    idle_timeout_ms: Annotated[int, Field(ge=1000, le=120_000)] | None = None


class SemanticDetection(Detection):
    """A turn ends when what was said sounds finished."""

    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"


TurnDetection = Annotated[ServerDetection | SemanticDetection, Field(discriminator="type")]


class Transcription(Wire):
    """Whether and how the client wants to be told what was heard."""

    model: str | None = None
    language: str | None = None
    languages: list[str] | None = None
    prompt: str | None = None
    keywords: list[str] | None = None
    delay: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class NoiseReduction(Wire):
    """Accepted and echoed; the detector hears through ordinary noise by itself."""

    type: Literal["near_field", "far_field"] | None = None
    strength: float | None = None


class InputPatch(Wire):
    """`audio.input`."""

    nullable: ClassVar[frozenset[str]] = frozenset(
        {"transcription", "noise_reduction", "turn_detection"}
    )

    format: AudioFormatPatch | None = None
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    turn_detection: TurnDetection | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_detection(cls, data: Any) -> Any:
        detection = data.get("turn_detection") if isinstance(data, dict) else None
        if isinstance(detection, dict) and detection.get("type") is None:
            return {**data, "turn_detection": {**detection, "type": "server_vad"}}
        return data


class VoiceReference(Wire):
    """A voice by its identifier."""

    id: str


class OutputPatch(Wire):
    """`audio.output`."""

    format: AudioFormatPatch | None = None
    voice: str | VoiceReference | None = None
    speed: Annotated[float, Field(ge=0.25, le=1.5)] | None = None

    @property
    def voice_name(self) -> str | None:
        """The voice's name, in whichever form it was given."""
        return self.voice.id if isinstance(self.voice, VoiceReference) else self.voice


class AudioPatch(Wire):
    """`audio`."""

    input: InputPatch | None = None
    output: OutputPatch | None = None


class FunctionTool(Wire):
    """A function that the client offers."""

    type: Literal["function"] = "function"
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    strict: bool | None = None


class NamedFunction(Wire):
    """A function that must be called."""

    type: Literal["function"]
    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedFunction
Modalities = Annotated[list[Modality], Field(min_length=1, max_length=2)]


class SessionPatch(Wire):
    """The changes that a client asks for; `id`, `object` and `expires_at` are read back at most."""

    nullable: ClassVar[frozenset[str]] = frozenset({"tracing", "prompt", "include"})

    type: Literal["realtime", "transcription"] | None = None
    id: str | None = None
    object: str | None = None
    expires_at: int | None = None
    model: str | None = None
    output_modalities: Modalities | None = None
    instructions: str | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: MaximumTokens | None = None
    truncation: str | dict[str, Any] | None = None
    tracing: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    include: list[str] | None = None
    audio: AudioPatch | None = None
