"""The body of a speech request, as clients send it and as the API's documentation shows it."""

from __future__ import annotations

import logging
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from app.audio.formats import AudioFormat
from app.errors import ApiError, invalid

logger = logging.getLogger(__name__)

LARGEST_SEED = 2**63 - 1


class VoiceReference(BaseModel):
    """A voice by its identifier; the same as naming it by a string."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    id: Annotated[str, Field(min_length=1, description="The voice's name or an alias of it.")]


VoiceField = Annotated[
    str | VoiceReference,
    Field(
        description="A voice of `GET /v1/audio/voices` or an alias of one; OpenAI's thirteen names "
        "are aliases.",
        examples=["alloy"],
    ),
]
SpeedField = Annotated[
    float,
    Field(ge=0.25, le=4.0, allow_inf_nan=False, description="1 is the voice's own pace."),
]
FormatField = Annotated[
    AudioFormat, Field(strict=False, description="The format of the audio bytes.")
]
SeedField = Annotated[
    int | None,
    Field(ge=0, le=LARGEST_SEED, description="Makes the audio repeatable. An extension."),
]
InstructionsField = Annotated[
    str | None,
    Field(max_length=4096, description="How to speak, for pipelines that follow instructions."),
]
LanguageField = Annotated[
    str | None,
    Field(
        min_length=2,
        max_length=64,
        description="A BCP 47 tag or a language's name, for pipelines that speak several. An "
        "extension.",
    ),
]
ReferenceAudioField = Annotated[
    str | None,
    Field(
        min_length=1,
        description="An audio file with the voice to speak with, in base64 or as a `data:` URL, "
        "for pipelines that clone voices. An extension.",
    ),
]
ReferenceTextField = Annotated[
    str | None,
    Field(max_length=4096, description="What is said in `ref_audio`. An extension."),
]
WholeTextField = Annotated[
    bool,
    Field(
        description="Whether the model may read the whole text before it begins, where it knows "
        "both. An extension."
    ),
]
TimestampsField = Annotated[
    Literal["word"] | None,
    Field(description="`word` sends `speech.word` events with the time of each. An extension."),
]


class WireModel(BaseModel):
    """A JSON object of a client: strict about values, lenient about keys and nulls."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls_and_unknown(cls, data: Any) -> Any:
        """Takes a null for a key that was left out, and notes the keys that mean nothing here."""
        if not isinstance(data, dict):
            return data
        unknown = sorted(str(key) for key in data if key not in cls.model_fields)
        if unknown:
            logger.debug("Ignoring unknown keys of %s: %s", cls.__name__, ", ".join(unknown))
        return {key: value for key, value in data.items() if value is not None}


class SpeechRequest(WireModel):
    """What to speak and how. Keys that are not listed are ignored."""

    model: Annotated[
        str, Field(min_length=1, description="A model of `GET /v1/models` or an alias of it.")
    ]
    input: Annotated[
        str,
        Field(description="The text. Its greatest length is a setting, 4096 characters if unset."),
    ]
    voice: VoiceField
    instructions: InstructionsField = None
    response_format: FormatField = AudioFormat.MP3
    speed: SpeedField = 1.0
    stream_format: Annotated[
        Literal["audio", "sse"],
        Field(description="`audio` sends bare bytes, `sse` events with base64 audio."),
    ] = "audio"
    stream: Annotated[
        bool,
        Field(
            description="`false` sends the body in one piece with a Content-Length and true sizes "
            "in its header. An extension."
        ),
    ] = True
    seed: SeedField = None
    timestamps: TimestampsField = None
    language: LanguageField = None
    ref_audio: ReferenceAudioField = None
    ref_text: ReferenceTextField = None
    whole_text: WholeTextField = False


def parse_speech_request(body: bytes) -> SpeechRequest:
    """Reads the body of a speech request.

    Raises:
        ApiError: 400 that names the field at fault.
    """
    try:
        return SpeechRequest.model_validate_json(body)
    except ValidationError as failure:
        raise explain(failure) from None


def explain(failure: ValidationError, *, skip: int = 0) -> ApiError:
    """The first mistake of a JSON object, in OpenAI's words as far as there are any.

    Args:
        failure: What pydantic found.
        skip: How many parts of the mistake's location are not keys of the client's object.
    """
    mistake = failure.errors(include_url=False)[0]
    location = mistake["loc"][skip:]
    if mistake["type"] == "json_invalid":
        reason = mistake["ctx"]["error"]
        return invalid(None, f"This is not valid JSON: {reason}.", "invalid_json")
    if not location:
        return invalid(None, "It must be a JSON object.", "invalid_type")
    # Behind a voice's name, pydantic says which of the two forms it tried.
    param = "voice" if location[0] == "voice" else ".".join(str(part) for part in location)
    if mistake["type"] == "missing" and (param != "voice" or len(location) == 1):
        message = f"Missing required parameter: '{param}'."
        return invalid(param, message, "missing_required_parameter")
    if mistake["type"] == "string_too_long":
        return invalid(param, _sentence(param, mistake), "string_above_max_length")
    return invalid(param, _sentence(param, mistake), "invalid_value")


def _sentence(param: str, mistake: ErrorDetails) -> str:
    if param == "voice":
        return 'Invalid voice: it must be a name or an object such as {"id": "alloy"}.'
    value = mistake["input"]
    shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:80] + "…"
    _, _, expected = mistake["msg"].partition(" should ")
    return f"Invalid value for '{param}': {shown}. It should {expected or 'be different'}."
