"""WebSocket `/v1/live/sessions`: full duplex."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from http import HTTPStatus

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from app.audio.wire_formats import WireFormat
from app.auth import authorize_websocket
from app.errors import ApiError
from app.live.projection import Projection, error_of
from app.live.schema import LiveConfig, SessionStart, parse_live_event
from app.live.socket import LiveSocket
from app.realtime.failure import EventError
from app.realtime.inbox import SocketOpened
from app.realtime.items import Message, Part, PartKind
from app.realtime.session import Session
from app.realtime.session_config import SessionConfig
from app.realtime.session_schema import SemanticDetection, Transcription, VoiceReference
from app.request_context import context_of
from app.speech.command import check_model, resolve_voice
from app.state import AppState, state_of
from app.websocket import accept, close_refused

router = APIRouter(tags=["live"])

MODEL_ALIASES = frozenset({"gpt-live-1", "gpt-live-1.1"})


@router.websocket("/v1/live/sessions")
async def live(websocket: WebSocket) -> None:
    """Talks and listens at the same time; the first event is `session.start`."""
    state = state_of(websocket)
    try:
        tenant = authorize_websocket(websocket)
    except ApiError as refusal:
        await websocket.send_denial_response(refusal.response())
        return
    await accept(websocket)
    try:
        start = await _started(websocket)
        session, projection = await _open(start.session, state, tenant)
    except (WebSocketDisconnect, TimeoutError):
        return
    except (ApiError, EventError) as refusal:
        await _refuse(websocket, refusal)
        return
    session.stage.trace = context_of(websocket).trace
    outbox = session.new_outbox()
    session.tell(SocketOpened(outbox))
    await LiveSocket(websocket, session, outbox, projection).run(start.event_id)
    await state.realtime.ended(session)


async def _started(websocket: WebSocket) -> SessionStart:
    """The first event; whatever else comes before it is refused.

    Raises:
        TimeoutError: It did not come.
        WebSocketDisconnect: The client left.
    """
    async with asyncio.timeout(state_of(websocket).settings.websocket_idle_seconds):
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message["code"])
            try:
                event = parse_live_event(message.get("text"))
                if isinstance(event, SessionStart):
                    return event
                text = "The first event must be 'session.start'."
                raise EventError(text, "session_not_started", "type", event_id=event.event_id)
            except EventError as refusal:
                await websocket.send_json(error_of(refusal.as_dict()))


async def _open(wanted: LiveConfig, state: AppState, tenant: str) -> tuple[Session, Projection]:
    """Begins the session.

    Raises:
        ApiError: A value is wrong, or it cannot be served now.
    """
    description = state.lifecycle.engine.description
    aliases = MODEL_ALIASES | set(state.settings.realtime_model_aliases)
    if wanted.model not in aliases:
        check_model(wanted.model, description, state.settings)
    audio = wanted.audio
    audio_format = WireFormat.PCM
    if audio is not None and audio.format is not None:
        audio_format = audio.format.wire_format
    voice = description.voices[0].name
    if audio is not None and audio.output is not None and audio.output.voice is not None:
        named = audio.output.voice
        voice = named.id if isinstance(named, VoiceReference) else named
        resolve_voice(voice, description)
    config = replace(
        SessionConfig(model=wanted.model, voice=voice),
        instructions=wanted.instructions or "",
        input_format=audio_format,
        output_format=audio_format,
        transcription=Transcription(),
        detection=SemanticDetection(type="semantic_vad", eagerness="high"),
    )
    session = await state.realtime.open(config, tenant)
    for message in wanted.input or ():
        role = "system" if message.role == "developer" else message.role
        kind = PartKind.OUTPUT_TEXT if role == "assistant" else PartKind.INPUT_TEXT
        item_id = f"item_before_{len(session.stage.conversation.items)}"
        session.stage.conversation.append(Message(item_id, role, [Part(kind, message.text)]))
    clock = asyncio.get_running_loop().time
    return session, Projection(wanted, audio_format, clock)


async def _refuse(websocket: WebSocket, refusal: ApiError | EventError) -> None:
    later = isinstance(refusal, ApiError) and refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    await websocket.send_json(error_of(refusal.as_dict()))
    await close_refused(websocket, refusal.message, later=later)
