"""From what a client wrote to what the engine is asked for."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from http import HTTPStatus

from app.audio.formats import AudioFormat
from app.errors import ApiError, invalid
from app.metrics import Transport
from app.settings import Settings
from app.speech.schema import SpeechRequest, VoiceReference
from engine import PipelineDescription, SpeechParameters

READING_ROUTE = "speech"
"""The route of texts that are read aloud."""


@dataclass(frozen=True, slots=True)
class SpeechCommand:
    """A speech request whose every value was checked.

    Attributes:
        text: What to speak.
        parameters: How to speak it; the voice by its own name.
        audio_format: The format of the bytes.
        transport: How the bytes travel.
        word_timestamps: Whether the client wants the time of each word.
    """

    text: str
    parameters: SpeechParameters
    audio_format: AudioFormat
    transport: Transport
    word_timestamps: bool


def resolve_speech_request(
    request: SpeechRequest, description: PipelineDescription, settings: Settings
) -> SpeechCommand:
    """Checks a speech request against this pipeline and the limits.

    Raises:
        ApiError: 400 that names the field at fault; 404 for an unknown model.
    """
    check_model(request.model, description, settings)
    check_reads_aloud(description)
    length = len(request.input)
    if length > settings.maximum_input_characters:
        raise invalid(
            "input",
            f"The input has {length} characters; at most {settings.maximum_input_characters} are "
            "allowed.",
            "string_above_max_length",
        )
    transport = _transport(request)
    wants_words = request.timestamps is not None
    if wants_words:
        check_timestamps(description)
    if wants_words and transport is not Transport.EVENTS:
        raise invalid(
            "timestamps",
            "Word times are sent as events: 'timestamps' needs 'stream_format' to be 'sse'.",
            "invalid_value",
        )
    return SpeechCommand(
        text=request.input,
        parameters=SpeechParameters(
            voice=resolve_voice(request.voice, description),
            speed=request.speed,
            seed=request.seed,
            instructions=request.instructions,
            language=request.language,
            reference_audio=decode_reference(request.ref_audio),
            reference_text=request.ref_text,
            whole_text=request.whole_text,
        ),
        audio_format=request.response_format,
        transport=transport,
        word_timestamps=wants_words,
    )


def decode_reference(audio: str | None) -> bytes | None:
    """The bytes of reference audio, in base64 or as a `data:` URL.

    Raises:
        ApiError: 400; it is neither.
    """
    if audio is None:
        return None
    encoded = audio
    if audio.startswith("data:"):
        head, comma, encoded = audio.partition(",")
        if not comma or not head.endswith(";base64"):
            raise invalid(
                "ref_audio",
                "Invalid ref_audio: a data URL must read `data:audio/…;base64,…`.",
                "invalid_value",
            )
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as failure:
        raise invalid(
            "ref_audio", f"Invalid ref_audio: it is no base64 ({failure}).", "invalid_value"
        ) from failure


def _transport(request: SpeechRequest) -> Transport:
    if request.stream_format == "sse":
        if not request.stream:
            raise invalid(
                "stream",
                "Events are always streamed: 'stream' cannot be false when 'stream_format' is "
                "'sse'.",
                "invalid_value",
            )
        return Transport.EVENTS
    return Transport.AUDIO if request.stream else Transport.WHOLE


def accepted_models(description: PipelineDescription, settings: Settings) -> tuple[str, ...]:
    """Every model name that is served: the pipeline's own first, then the aliases."""
    return tuple(dict.fromkeys((*description.models, *settings.model_aliases)))


def check_reads_aloud(description: PipelineDescription) -> None:
    """Refuses texts where the pipeline only answers.

    Raises:
        ApiError: 400.
    """
    if READING_ROUTE not in description.routes:
        raise invalid(
            "model",
            f"The pipeline {description.name!r} answers conversations and reads no texts aloud; "
            "use /v1/chat/completions or /v1/realtime, or start a pipeline that does.",
            "unsupported_model",
        )


def check_model(model: str, description: PipelineDescription, settings: Settings) -> None:
    """Refuses a model that is not served.

    Raises:
        ApiError: 404 with OpenAI's code `model_not_found`.
    """
    known = accepted_models(description, settings)
    if settings.accept_any_model or model in known:
        return
    raise ApiError(
        HTTPStatus.NOT_FOUND,
        f"The model {model!r} does not exist here. Known models: {', '.join(known)}.",
        param="model",
        code="model_not_found",
    )


def resolve_voice(
    voice: str | VoiceReference, description: PipelineDescription, param: str = "voice"
) -> str:
    """The pipeline's own name of a voice, whose name or alias is written in any case.

    Args:
        voice: What the client named.
        description: Has the names.
        param: The client's field, for the error.

    Raises:
        ApiError: 400 that lists the names.
    """
    wanted = (voice if isinstance(voice, str) else voice.id).casefold()
    for known in description.voices:
        if wanted in (name.casefold() for name in (known.name, *known.aliases)):
            return known.name
    names = [name for known in description.voices for name in (known.name, *known.aliases)]
    raise invalid(
        param,
        f"There is no voice {wanted!r}. Known voices: {', '.join(names)}.",
        "invalid_value",
    )


def check_timestamps(description: PipelineDescription) -> None:
    """Refuses word times where the pipeline knows none.

    Raises:
        ApiError: 400.
    """
    if not description.word_timings:
        raise invalid(
            "timestamps",
            f"The pipeline {description.name!r} does not know when each word is spoken.",
            "invalid_value",
        )
