"""`POST /v1/audio/speech`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.audio.encoders import open_encoder
from app.audio.worker import StreamEncoder
from app.auth import authorize_request
from app.body import read_body
from app.engine_port import SpeechEngine
from app.errors import ApiError, invalid
from app.metrics import Outcome, Transport
from app.openapi import SPEECH_BODY, SPEECH_RESPONSES
from app.request_context import RequestContext, context_of
from app.speech.command import SpeechCommand, resolve_speech_request
from app.speech.framing import AudioFraming, EventFraming
from app.speech.response import Delivery, SpeechResponse
from app.speech.schema import parse_speech_request
from app.speech.stream import SpokenStream
from app.speech.warning import warning_for
from app.state import AppState, state_of
from app.timeline import Endpoint
from engine import OmniRequest, TextInput, TextReport

router = APIRouter(tags=["speech"])

INLINE_BODY_BYTES = 64 << 10
"""Bodies up to this size are read on the event loop; larger ones on a worker thread."""

INLINE_INSPECTION_CHARACTERS = 500
"""Texts up to this length are looked at on the event loop; longer ones on a worker thread."""


@router.post(
    "/v1/audio/speech",
    summary="Speak a text",
    response_class=Response,
    responses=SPEECH_RESPONSES,
    openapi_extra={"requestBody": SPEECH_BODY},
)
async def create_speech(
    request: Request,
    tenant: Annotated[str, Depends(authorize_request)],
    state: Annotated[AppState, Depends(state_of)],
) -> Response:
    """Speaks a text and streams the audio while it is being made.

    The status and headers are sent when the first audio exists. A stream of bare audio that fails
    later is broken off without its proper end; a stream of events ends with an `error` event.
    """
    transport = Transport.AUDIO
    try:
        body = await read_body(request, state.settings.maximum_body_bytes)
        engine = state.lifecycle.engine
        command = await _understand(state, engine, body)
        transport = command.transport
        report = await inspect_text(state, engine, command.text)
        if not report.speakable:
            raise invalid("input", "The input holds nothing that can be spoken.", "invalid_value")
    except ApiError as error:
        outcome = Outcome.REFUSED if error.status < 500 else Outcome.OVERLOADED
        state.metrics.requests.labels(transport, outcome).inc()
        raise
    return _response(state, engine, command, report, tenant, context_of(request))


async def _understand(state: AppState, engine: SpeechEngine, body: bytes) -> SpeechCommand:
    """Reads and checks a body; one that is large, with reference audio, on a worker thread."""

    def understand() -> SpeechCommand:
        request = parse_speech_request(body)
        return resolve_speech_request(request, engine.description, state.settings)

    if len(body) <= INLINE_BODY_BYTES:
        return understand()
    return await state.codecs.run(understand)


async def inspect_text(state: AppState, engine: SpeechEngine, text: str) -> TextReport:
    """Looks at a text before it is spoken; a long one on a worker thread."""
    if len(text) <= INLINE_INSPECTION_CHARACTERS:
        return engine.inspect(text)
    return await state.codecs.run(lambda: engine.inspect(text))


def _response(
    state: AppState,
    engine: SpeechEngine,
    command: SpeechCommand,
    report: TextReport,
    tenant: str,
    context: RequestContext,
) -> SpeechResponse:
    settings = state.settings
    omni_request = OmniRequest(
        request_id=context.request_id,
        text=TextInput.whole(command.text),
        parameters=command.parameters,
        tenant=tenant,
        deadline=settings.request_deadline_seconds,
    )
    encoder = open_encoder(
        command.audio_format,
        engine.description.sample_rate,
        whole=command.transport is Transport.WHOLE,
        unknown_wav_size=settings.streamed_wav_size,
    )
    stream_encoder = StreamEncoder(state.codecs, encoder, plain=command.audio_format.is_plain)
    record = state.timelines.open(
        omni_request, Endpoint.SPEECH, received=context.arrived, trace=context.trace
    )
    delivery = Delivery(
        record=record,
        transport=command.transport,
        headers=warning_for(report.left_out),
        slow_client_seconds=settings.slow_client_seconds,
        maximum_whole_bytes=settings.maximum_whole_bytes,
        metrics=state.metrics,
        timelines=state.timelines,
    )
    framing: AudioFraming | EventFraming
    if command.transport is Transport.EVENTS:
        framing = EventFraming(len(command.text), with_words=command.word_timestamps)
    else:
        framing = AudioFraming(command.audio_format)
    stream = SpokenStream(engine, omni_request, stream_encoder, record)
    return SpeechResponse(stream, framing, delivery)
