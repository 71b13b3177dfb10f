"""WebSocket `/v1/audio/speech/stream`."""

from __future__ import annotations

from fastapi import APIRouter, WebSocket

from app.auth import authorize_websocket
from app.errors import ApiError
from app.state import state_of
from app.text_stream.events import EventError, error_event
from app.text_stream.session import TextStreamSession
from app.websocket import accept, close_refused

router = APIRouter()


@router.websocket("/v1/audio/speech/stream")
async def stream_speech(websocket: WebSocket) -> None:
    """Speaks texts while they are being written; see `app.text_stream.events` for the events.

    The key comes in the Authorization header or, from browsers, as the subprotocol
    `openai-insecure-api-key.<key>` beside `realtime`.
    """
    state = state_of(websocket)
    try:
        tenant = authorize_websocket(websocket)
    except ApiError as refusal:
        await websocket.send_denial_response(refusal.response())
        return
    await accept(websocket)
    try:
        engine = state.lifecycle.engine
    except ApiError as refusal:
        await websocket.send_text(error_event(EventError(refusal)))
        await close_refused(websocket, refusal.message, later=True)
        return
    with state.metrics.websockets.track_inprogress():
        await TextStreamSession(websocket, state, engine, tenant).run()
