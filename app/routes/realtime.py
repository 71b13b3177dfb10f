"""WebSocket `/v1/realtime`, and `POST /v1/realtime/client_secrets` for browsers."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, WebSocket
from pydantic import Field, ValidationError

from app.audio.wire_formats import TICKS_PER_MILLISECOND
from app.auth import (
    authorize_request,
    authorize_websocket,
    bearer_key,
    check_origin,
    subprotocol_key,
)
from app.body import read_body
from app.errors import ApiError, invalid
from app.identifiers import new_identifier
from app.openapi import REQUEST_RESPONSES
from app.realtime.client_secrets import ClientSecret
from app.realtime.failure import EventError, explain
from app.realtime.inbox import SocketOpened
from app.realtime.session import Session
from app.realtime.session_config import SessionConfig
from app.realtime.session_schema import SessionPatch, Transcription
from app.realtime.socket import SessionSocket
from app.realtime.wire import Wire
from app.request_context import context_of
from app.speech.command import check_model
from app.state import AppState, state_of
from app.websocket import accept, close_refused
from engine import PipelineDescription

router = APIRouter(tags=["realtime"])

_MOST_DIGITS = 9
"""Of a time in milliseconds, which is 11 days."""


@router.websocket("/v1/realtime")
async def converse(websocket: WebSocket) -> None:
    """Holds a conversation in OpenAI's Realtime protocol.

    The key comes in the Authorization header or, from browsers, as the subprotocol
    `openai-insecure-api-key.<key>` beside `realtime`. `?resume=1` makes the session one that can be
    taken over by another socket: its `session.created` has a `resume_token`, and a socket that is
    opened with `?resume=<token>` goes on where the older one stopped. What that one has got is said
    by `after=<event_id>`, or by `item_id=` and `audio_end_ms=`: how much was played of an answer.
    """
    state = state_of(websocket)
    service = state.realtime
    try:
        secret = service.secrets.find(bearer_key(websocket) or subprotocol_key(websocket))
        if secret is None:
            tenant = authorize_websocket(websocket)
        else:
            check_origin(websocket, state.settings.cors_origins)
            tenant = secret.tenant
        resume = websocket.query_params.get("resume")
        resumed = None if resume in (None, "", "0", "1") else service.find(str(resume), tenant)
    except ApiError as refusal:
        await websocket.send_denial_response(refusal.response())
        return
    await accept(websocket)
    try:
        played = _played(websocket)
        session = resumed or await _open(websocket, state, tenant, secret)
    except (ApiError, EventError) as refusal:
        await _refuse(websocket, refusal)
        return
    if resume == "1":
        session.make_resumable()
    session.stage.trace = context_of(websocket).trace
    outbox = session.new_outbox()
    after = websocket.query_params.get("after")
    session.tell(SocketOpened(outbox, resumed is not None, after, played))
    await SessionSocket(websocket, session, outbox).run()
    if session.resume_token is None:
        await service.ended(session)


def _played(websocket: WebSocket) -> tuple[str, int] | None:
    """How much of an answer was played, as the URL says: the item, and ticks.

    Raises:
        ApiError: 400, it says no time.
    """
    item_id = websocket.query_params.get("item_id")
    if item_id is None:
        return None
    end = websocket.query_params.get("audio_end_ms", "0")
    if not end.isdecimal() or len(end) > _MOST_DIGITS:
        message = f"Invalid value: {end[:40]!r}. 'audio_end_ms' is a number of milliseconds."
        raise invalid("audio_end_ms", message, "invalid_value")
    return item_id, int(end) * TICKS_PER_MILLISECOND


async def _open(
    websocket: WebSocket, state: AppState, tenant: str, secret: ClientSecret | None
) -> Session:
    """Begins a session as the URL and the client's secret say.

    Raises:
        ApiError: It cannot be served, or not now.
        EventError: The settings in the secret contradict the URL's.
    """
    description = state.lifecycle.engine.description
    patch = None if secret is None else secret.session
    model = websocket.query_params.get("model") or (None if patch is None else patch.model)
    if model is not None:
        _check_model(model, state)
    intent = websocket.query_params.get("intent")
    if intent not in (None, "transcription"):
        message = f"Invalid value: {intent[:40]!r}. Supported values are: 'transcription'."
        raise invalid("intent", message, "invalid_value")
    kind = intent or (None if patch is None else patch.type)
    return await state.realtime.open(_configured(model, kind, description, patch), tenant)


def _check_model(model: str, state: AppState) -> None:
    if model not in state.settings.realtime_model_aliases:
        check_model(model, state.lifecycle.engine.description, state.settings)


async def _refuse(websocket: WebSocket, refusal: ApiError | EventError) -> None:
    """An `error` event and a close, for clients that cannot see why an upgrade failed."""
    if isinstance(refusal, ApiError):
        kind, later = refusal.kind, refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        code = refusal.code or "server_error"
        refusal = EventError(refusal.message, code, refusal.param, kind=kind)
    else:
        later = False
    event = {"type": "error", "event_id": new_identifier("event"), "error": refusal.as_dict()}
    await websocket.send_json(event)
    await close_refused(websocket, refusal.message, later=later)


def _configured(
    model: str | None,
    kind: str | None,
    description: PipelineDescription,
    patch: SessionPatch | None,
) -> SessionConfig:
    """What a session begins with.

    Raises:
        EventError: The settings contradict each other.
    """
    config = SessionConfig(
        model=model or description.models[0],
        voice=description.voices[0].name,
        kind="transcription" if kind == "transcription" else "realtime",
    )
    if config.kind == "transcription":
        config = replace(config, transcription=Transcription())
    return config if patch is None else config.updated(patch, voice_is_fixed=False)


class _ExpiresAfter(Wire):
    anchor: Literal["created_at"] = "created_at"
    seconds: Annotated[int, Field(ge=10, le=7200)] | None = None


class _SecretRequest(Wire):
    expires_after: _ExpiresAfter = Field(default_factory=_ExpiresAfter)
    session: SessionPatch = Field(default_factory=SessionPatch)


@router.post(
    "/v1/realtime/client_secrets",
    summary="Make a short-lived key for a browser",
    responses=REQUEST_RESPONSES,
)
async def create_client_secret(
    request: Request,
    tenant: Annotated[str, Depends(authorize_request)],
    state: Annotated[AppState, Depends(state_of)],
) -> dict[str, Any]:
    """Makes a key that opens realtime sessions for some minutes, with settings of their own."""
    body = await read_body(request, state.settings.maximum_body_bytes)
    wanted = _parse(body)
    description = state.lifecycle.engine.description
    try:
        patch = wanted.session
        config = _configured(patch.model, patch.type, description, patch)
    except EventError as refusal:
        raise invalid(refusal.param, refusal.message, refusal.code) from None
    seconds = wanted.expires_after.seconds or state.settings.realtime_secret_seconds
    secret = state.realtime.secrets.make(patch, tenant, seconds)
    # The session has not begun; this is how long one would last that began now.
    expires_at = int(time.time() + state.settings.realtime_session_seconds)
    return {
        "value": secret.value,
        "expires_at": secret.expires_at,
        "session": config.as_wire(new_identifier("sess"), expires_at),
    }


def _parse(body: bytes) -> _SecretRequest:
    try:
        data = json.loads(body) if body else {}
        return _SecretRequest.model_validate(data)
    except ValidationError as failure:
        refusal = explain(failure, data)
        raise invalid(refusal.param, refusal.message, refusal.code) from None
    except (ValueError, RecursionError):
        raise invalid(None, "This is not valid JSON.", "invalid_json") from None
