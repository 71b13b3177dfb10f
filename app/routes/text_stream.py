"""WebSocket `/v1/audio/speech/stream`."""

from __future__ import annotations

import logging

from fastapi import APIRouter, WebSocket

from app.auth import SUBPROTOCOL, authorize_websocket
from app.errors import ApiError
from app.state import state_of
from app.text_stream.events import EventError, error_event
from app.text_stream.session import TextStreamSession

logger = logging.getLogger(__name__)

router = APIRouter()

_TRY_AGAIN_LATER = 1013


@router.websocket("/v1/audio/speech/stream")
async def stream_speech(websocket: WebSocket) -> None:
    """Speaks texts while they are being written; see `app.text_stream.events` for the events.

    The key comes in the Authorization header or, from browsers, as the subprotocol
    `openai-insecure-api-key.<key>` beside `realtime`.
    """
    state = state_of(websocket)
    offered = list(websocket.scope.get("subprotocols", []))
    try:
        tenant = authorize_websocket(websocket, offered)
    except ApiError as refusal:
        await websocket.send_denial_response(refusal.response())
        return
    await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
    try:
        engine = state.lifecycle.engine
    except ApiError as refusal:
        await websocket.send_text(error_event(EventError(refusal)))
        await websocket.close(_TRY_AGAIN_LATER, refusal.message[:120])
        return
    with state.metrics.websockets.track_inprogress():
        await TextStreamSession(websocket, state, engine, tenant).run()
