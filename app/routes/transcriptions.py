"""`POST /v1/audio/transcriptions`: recordings to text, by the ear that conversations use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import JSONResponse, PlainTextResponse, Response

from app.audio.pcm import FloatSamples
from app.auth import authorize_request
from app.body import read_body
from app.disconnect import unless_disconnected
from app.ear import SAMPLE_RATE
from app.errors import ApiError, invalid, retry_later
from app.event_stream import Event, EventStreamResponse, server_sent_event
from app.openapi import REQUEST_RESPONSES
from app.pace import ClientPace
from app.state import AppState, state_of
from app.transcriptions import (
    TextFormat,
    TranscriptionRequest,
    as_json,
    as_srt,
    as_verbose_json,
    as_vtt,
    check_language,
    joined,
    read_request,
    usage_of,
)

if TYPE_CHECKING:
    from app.ear.ear import Ear
    from app.ear.recognizer import Segment

router = APIRouter(tags=["transcriptions"])

MODEL_ALIASES = frozenset(
    {"whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-transcribe"}
)
"""Names of OpenAI's models that stand for the ear's."""

_FORM_BYTES = 64 << 10
"""What a form may have beside the recording."""

_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file", "model"],
                "properties": {
                    "file": {"type": "string", "format": "binary"},
                    "model": {"type": "string", "examples": ["whisper-1"]},
                    "language": {"type": "string"},
                    "prompt": {"type": "string"},
                    "response_format": {"type": "string", "enum": list(TextFormat)},
                    "temperature": {"type": "number", "minimum": 0, "maximum": 1},
                    "timestamp_granularities[]": {
                        "type": "array",
                        "items": {"type": "string", "enum": ["word", "segment"]},
                    },
                    "stream": {"type": "boolean"},
                },
            }
        }
    },
}


async def _place(state: Annotated[AppState, Depends(state_of)]) -> AsyncGenerator[None]:
    """Holds one of the places for transcriptions until the response has been sent."""
    with state.recordings.place():
        yield


@router.post(
    "/v1/audio/transcriptions",
    summary="Transcribe a recording",
    response_class=Response,
    responses=REQUEST_RESPONSES,
    dependencies=[Depends(authorize_request), Depends(_place, scope="request")],
    openapi_extra={"requestBody": _BODY},
)
async def create_transcription(
    request: Request, state: Annotated[AppState, Depends(state_of)]
) -> Response:
    """Writes down what is said in a recording."""
    limit = state.settings.transcription_bytes
    body = await read_body(request, limit + _FORM_BYTES)
    wanted = await _parse(request, body)
    _check_model(wanted.model, state)
    ear = await state.realtime.ear()
    if ear is None:
        message = "This server does not listen; its operator can fetch the models it needs."
        raise retry_later(message, "ear_unavailable", 60)
    check_language(wanted.language, ear.languages)
    sound = await unless_disconnected(request, state.recordings.decode(wanted.recording))
    if wanted.stream:
        pace = ClientPace(state.settings.slow_client_seconds)
        return EventStreamResponse(_events(ear, sound, wanted), pace)
    segments = await unless_disconnected(request, _all(ear, sound, wanted))
    return _response(segments, len(sound) / SAMPLE_RATE, wanted)


async def _parse(request: Request, body: bytes) -> TranscriptionRequest:
    async def whole() -> AsyncGenerator[bytes]:
        yield body

    if "multipart/form-data" not in request.headers.get("content-type", ""):
        raise invalid(None, "The request must be multipart/form-data.", "invalid_content_type")
    try:
        form = await MultiPartParser(request.headers, whole(), max_fields=100).parse()
    except (MultiPartException, KeyError) as failure:
        raise invalid(None, f"The form cannot be read: {failure}.", "invalid_form") from None
    try:
        return await read_request(form)
    finally:
        await form.close()


def _check_model(model: str, state: AppState) -> None:
    known = MODEL_ALIASES | {state.settings.ear_recognizer_model}
    if model not in known and not state.settings.accept_any_model:
        names = ", ".join(sorted(known))
        raise ApiError(
            404,
            f"The model {model!r} does not exist here. Known models: {names}.",
            param="model",
            code="model_not_found",
        )


def _pieces(ear: Ear, sound: FloatSamples, wanted: TranscriptionRequest) -> AsyncGenerator[Segment]:
    return ear.segments(
        sound,
        language=wanted.language,
        prompt=wanted.prompt,
        temperature=wanted.temperature,
        words=wanted.words,
    )


async def _all(ear: Ear, sound: FloatSamples, wanted: TranscriptionRequest) -> list[Segment]:
    async with aclosing(_pieces(ear, sound, wanted)) as pieces:
        return [segment async for segment in pieces]


async def _events(
    ear: Ear, sound: FloatSamples, wanted: TranscriptionRequest
) -> AsyncGenerator[Event]:
    segments: list[Segment] = []
    async with aclosing(_pieces(ear, sound, wanted)) as pieces:
        async for segment in pieces:
            delta = segment.text if segments else segment.text.lstrip()
            segments.append(segment)
            yield Event(server_sent_event({"type": "transcript.text.delta", "delta": delta}))
    usage = usage_of(len(sound) / SAMPLE_RATE)
    done = {"type": "transcript.text.done", "text": joined(segments), "usage": usage}
    yield Event(server_sent_event(done))


def _response(segments: list[Segment], seconds: float, wanted: TranscriptionRequest) -> Response:
    match wanted.text_format:
        case TextFormat.JSON:
            return JSONResponse(as_json(segments, seconds))
        case TextFormat.VERBOSE_JSON:
            return JSONResponse(as_verbose_json(segments, seconds, wanted))
        case TextFormat.TEXT:
            return PlainTextResponse(joined(segments) + "\n")
        case TextFormat.SRT:
            return PlainTextResponse(as_srt(segments))
        case TextFormat.VTT:
            return PlainTextResponse(as_vtt(segments), media_type="text/vtt")
