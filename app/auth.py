"""API keys and origins, for HTTP requests and WebSockets alike."""

from __future__ import annotations

import hashlib
import hmac
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from app.errors import ApiError
from app.state import AppState, state_of

SUBPROTOCOL = "realtime"
"""The WebSocket subprotocol that a server must answer when it is offered."""

_KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; OpenAI's clients put the key here instead."""

_TENANT_DIGITS = 16

_documented_bearer = HTTPBearer(
    auto_error=False, description="Only needed when the server was given API keys."
)


async def authorize_request(
    request: Request, _documented: Annotated[object, Depends(_documented_bearer)]
) -> str:
    """A FastAPI dependency: lets a request in and says whose it is.

    Returns:
        The tenant: a digest of the key, or nothing when keys are not used.

    Raises:
        ApiError: 401, the key is missing or wrong.
    """
    return tenant_of(state_of(request), bearer_key(request))


def tenant_of(state: AppState, key: str | None) -> str:
    """Checks a key against the configured ones.

    Raises:
        ApiError: 401, the key is missing or wrong.
    """
    if not state.key_digests:
        return ""
    if key is None:
        raise _unauthorized(
            "You did not provide an API key. Send it as 'Authorization: Bearer <key>'."
        )
    digest = hashlib.sha256(key.encode()).digest()
    # Every comparison is made, so that the time says nothing about which key came near.
    matches = [hmac.compare_digest(digest, known) for known in state.key_digests]
    if not any(matches):
        raise _unauthorized("The API key is not correct.")
    return digest.hex()[:_TENANT_DIGITS]


def bearer_key(connection: HTTPConnection) -> str | None:
    """The key of the Authorization header, if there is one."""
    scheme, _, key = connection.headers.get("authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


def offered_subprotocols(connection: HTTPConnection) -> list[str]:
    """The subprotocols that a WebSocket client offers."""
    return list(connection.scope.get("subprotocols", []))


def subprotocol_key(connection: HTTPConnection) -> str | None:
    """The key among the subprotocols that a WebSocket client offers, if there is one."""
    for protocol in offered_subprotocols(connection):
        if protocol.startswith(_KEY_SUBPROTOCOL):
            return protocol.removeprefix(_KEY_SUBPROTOCOL) or None
    return None


def authorize_websocket(connection: HTTPConnection) -> str:
    """Lets a WebSocket in and says whose it is.

    Args:
        connection: The upgrade request.

    Returns:
        The tenant: a digest of the key, or nothing when keys are not used.

    Raises:
        ApiError: 403 for a page of a foreign origin, 401 for a missing or wrong key.
    """
    state = state_of(connection)
    check_origin(connection, state.settings.cors_origins)
    return tenant_of(state, bearer_key(connection) or subprotocol_key(connection))


def check_origin(connection: HTTPConnection, allowed: tuple[str, ...]) -> None:
    """Refuses WebSockets that a web page of another origin opens, which CORS does not cover.

    Programs send no Origin and pass; so do pages that this server itself delivered.

    Raises:
        ApiError: 403.
    """
    origin = connection.headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
        return
    if urlsplit(origin).netloc == connection.headers.get("host"):
        return
    raise ApiError(
        HTTPStatus.FORBIDDEN,
        f"Pages of the origin {origin!r} may not use this server; its operator can allow them "
        "with the setting ANTIPHON_CORS_ORIGINS.",
        code="origin_not_allowed",
    )


def _unauthorized(message: str) -> ApiError:
    return ApiError(
        HTTPStatus.UNAUTHORIZED,
        message,
        code="invalid_api_key",
        headers={"WWW-Authenticate": "Bearer"},
    )
