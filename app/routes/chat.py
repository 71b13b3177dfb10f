"""`POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.audio.encoders import open_encoder
from app.audio.formats import AudioFormat
from app.audio.worker import StreamEncoder
from app.auth import authorize_request
from app.body import read_body
from app.chat.answer import Answer, Piece, Sound
from app.chat.command import engine_request
from app.chat.schema import ChatRequest, parse_chat_request
from app.disconnect import unless_disconnected
from app.errors import ApiError, from_engine_error
from app.event_stream import Event, EventStreamResponse, PacedJSONResponse, server_sent_event
from app.openapi import WORK_RESPONSES
from app.pace import ClientPace
from app.request_context import context_of
from app.state import AppState, state_of
from app.timeline import Endpoint, RequestRecord
from engine import AbortReason, EngineError

router = APIRouter(tags=["chat"])


@router.post(
    "/v1/chat/completions",
    summary="Answer a conversation in text and speech",
    response_class=Response,
    responses=WORK_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def create_chat_completion(
    request: Request,
    tenant: Annotated[str, Depends(authorize_request)],
    state: Annotated[AppState, Depends(state_of)],
) -> Response:
    """Answers a conversation; with `modalities` of text and audio, in speech as well."""
    body = await read_body(request, state.settings.transcription_bytes * 4 // 3)
    wanted = await state.codecs.run(lambda: parse_chat_request(body))
    context = context_of(request)
    engine_asked = engine_request(wanted, state, context.request_id, tenant)
    asked = await unless_disconnected(request, engine_asked)
    engine = state.lifecycle.engine
    answer = Answer(wanted.model, wanted.spoken)
    record = state.timelines.open(
        asked, Endpoint.CHAT, received=context.arrived, trace=context.trace
    )
    give_up = partial(engine.abort, asked.request_id, AbortReason.SLOW_CLIENT)
    pace = ClientPace(state.settings.slow_client_seconds, give_up)
    pieces = _recorded(
        answer.pieces(engine, asked, _encoder(wanted, state), record), answer, record, state
    )
    if not wanted.stream:
        return await unless_disconnected(request, _whole(answer, pieces, pace, state))
    # The headers wait for the first piece, so that whatever fails before is an HTTP error.
    first = await unless_disconnected(request, _first(pieces))
    return EventStreamResponse(_events(answer, first, pieces, wanted), pace)


async def _recorded(
    pieces: AsyncGenerator[Piece], answer: Answer, record: RequestRecord, state: AppState
) -> AsyncGenerator[Piece]:
    """The same pieces; the request's record ends with them."""
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece
                if isinstance(piece, Sound):
                    record.sent()
    finally:
        state.timelines.close(record, answer.outcome)


def _encoder(wanted: ChatRequest, state: AppState) -> StreamEncoder | None:
    if not wanted.spoken or wanted.audio is None:
        return None
    audio_format = wanted.audio.format.audio_format
    rate = state.lifecycle.engine.description.sample_rate
    encoder = open_encoder(audio_format, rate, whole=not wanted.stream)
    return StreamEncoder(state.codecs, encoder, plain=audio_format is AudioFormat.PCM)


async def _first(pieces: AsyncGenerator[Piece]) -> Piece | None:
    return await anext(pieces, None)


async def _whole(
    answer: Answer, pieces: AsyncGenerator[Piece], pace: ClientPace, state: AppState
) -> PacedJSONResponse:
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Sound):
                answer.sound += piece.data
    # Minutes of sound become base64 and JSON, which is not for the event loop.
    return await state.codecs.run(
        lambda: PacedJSONResponse(answer.as_completion(), pace, answer.seconds)
    )


async def _events(
    answer: Answer,
    first: Piece | None,
    pieces: AsyncGenerator[Piece],
    wanted: ChatRequest,
) -> AsyncGenerator[Event]:
    """The answer as events; a failure in the middle is the last of them."""
    async with aclosing(pieces):
        yield _event(answer.as_chunk({"role": "assistant"}))
        if first is not None:
            yield _event(answer.as_chunk(answer.delta(first)), _seconds(first))
        try:
            async for piece in pieces:
                yield _event(answer.as_chunk(answer.delta(piece)), _seconds(piece))
        except EngineError as failure:
            yield _event({"error": from_engine_error(failure).as_dict()})
            return
        except ApiError as failure:
            yield _event({"error": failure.as_dict()})
            return
    yield _event(answer.as_chunk({}, answer.finish_reason))
    if wanted.stream_options.include_usage:
        yield _event(answer.as_usage_chunk())
    yield Event("data: [DONE]\n\n")


def _seconds(piece: Piece) -> float:
    return piece.seconds if isinstance(piece, Sound) else 0.0


def _event(data: dict[str, Any], seconds: float = 0.0) -> Event:
    return Event(server_sent_event(data), seconds)
