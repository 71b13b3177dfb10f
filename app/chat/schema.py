"""The body of a chat completion, as clients send it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from app.audio.formats import AudioFormat
from app.errors import ApiError, invalid
from app.json_text import JsonObjectText
from app.realtime.failure import explain


class Lenient(BaseModel):
    """A JSON object: strict about values, lenient about keys and nulls."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


class TextPart(Lenient):
    """Text of a message."""

    type: Literal["text"]
    text: str


class Recording(Lenient):
    """Sound in base64, in any form that FFmpeg knows."""

    data: str
    format: str = "wav"


class AudioPart(Lenient):
    """Speech in a user's message."""

    type: Literal["input_audio"]
    input_audio: Recording


class Picture(Lenient):
    """Where a picture is: a `data:` URL."""

    url: str


class ImagePart(Lenient):
    """A picture in a user's message; `detail` changes nothing, it is seen as it is."""

    type: Literal["image_url"]
    image_url: Picture


ContentPart = Annotated[TextPart | AudioPart | ImagePart, Field(discriminator="type")]


def _form(content: object) -> str:
    return "parts" if isinstance(content, list) else "text"


Content = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ContentPart], Tag("parts")],
    Discriminator(_form),
]
"""Told apart by its form, so that what is wrong in a part is named."""


class CalledFunction(Lenient):
    """A function with arguments as a JSON text."""

    name: str
    arguments: JsonObjectText = "{}"


class Call(Lenient):
    """A call that the assistant asked for."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class Message(Lenient):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = ""
    tool_calls: list[Call] = Field(default_factory=list)
    tool_call_id: str | None = None


class Function(Lenient):
    """A function that the client offers."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class ChatTool(Lenient):
    """A tool; only functions are known."""

    type: Literal["function"]
    function: Function


class ChosenFunction(Lenient):
    """The name of a function."""

    name: str


class ChosenTool(Lenient):
    """A function that must be called."""

    type: Literal["function"]
    function: ChosenFunction


class SpokenFormat(StrEnum):
    """The values of `audio.format`."""

    WAV = "wav"
    MP3 = "mp3"
    FLAC = "flac"
    OPUS = "opus"
    AAC = "aac"
    PCM16 = "pcm16"

    @property
    def audio_format(self) -> AudioFormat:
        """The same as the speech endpoint calls it."""
        return AudioFormat.PCM if self is SpokenFormat.PCM16 else AudioFormat(self.value)


class AudioOptions(Lenient):
    """How the answer sounds."""

    voice: str = "alloy"
    format: Annotated[SpokenFormat, Field(strict=False)] = SpokenFormat.WAV


class ResponseFormat(Lenient):
    """How the answer is written; only as text."""

    type: Literal["text"]


class StreamOptions(Lenient):
    """What a stream tells at its end."""

    include_usage: bool = False


class ChatRequest(Lenient):
    """A conversation to be answered. Keys that are not listed are ignored."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[Message], Field(min_length=1)]
    modalities: Annotated[list[Literal["text", "audio"]], Field(min_length=1)] = ["text"]
    audio: AudioOptions | None = None
    tools: list[ChatTool] = Field(default_factory=list)
    tool_choice: Literal["auto", "none", "required"] | ChosenTool = "auto"
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    seed: int | None = None
    n: Literal[1] = 1
    response_format: ResponseFormat | None = None
    logprobs: Literal[False] = False
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()

    @property
    def spoken(self) -> bool:
        """Whether the answer is to be heard."""
        return "audio" in self.modalities


def parse_chat_request(body: bytes) -> ChatRequest:
    """Reads the body.

    Raises:
        ApiError: 400 that names the field at fault.
    """
    try:
        data = from_json(body)
        request = ChatRequest.model_validate(data)
    except ValidationError as failure:
        refusal = explain(failure, data)
        raise invalid(refusal.param, refusal.message, refusal.code) from None
    except ValueError:
        raise invalid(None, "This is not valid JSON.", "invalid_json") from None
    if request.spoken and request.audio is None:
        raise _missing_audio()
    streamable = request.audio is None or request.audio.format is SpokenFormat.PCM16
    if request.spoken and request.stream and not streamable:
        raise invalid(
            "audio.format",
            "A streamed answer is heard as 'pcm16'; no other format.",
            "invalid_value",
        )
    return request


def _missing_audio() -> ApiError:
    message = "An answer that is heard needs 'audio', with a voice and a format."
    return invalid("audio", message, "missing_required_parameter")
