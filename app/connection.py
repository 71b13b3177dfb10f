"""Ending a connection abruptly, which ASGI itself has no message for."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_EXTENSION = "antiphon.connection"


class ConnectionCutError(Exception):
    """Raised through the server where it offers no gentler way to break off a response."""


class Connection:
    """The transport under a request."""

    def __init__(self, transport: asyncio.Transport) -> None:
        """Wraps it; nothing is read or written here."""
        self._transport = transport

    def close(self) -> None:
        """Ends the connection after what was written, without the response's proper end."""
        self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once; what was not sent yet is dropped."""
        self._transport.abort()


def connection_of(scope: Scope) -> Connection | None:
    """The connection under a request, if the server is ours."""
    connection = scope.get("extensions", {}).get(_EXTENSION)
    return connection if isinstance(connection, Connection) else None


def _with_connection(app: Any, transport: asyncio.Transport, write_buffer_bytes: int) -> ASGIApp:
    transport.set_write_buffer_limits(high=write_buffer_bytes)
    connection = Connection(transport)

    async def with_connection(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("extensions", {})[_EXTENSION] = connection
        await app(scope, receive, send)

    return with_connection


def http_protocol(write_buffer_bytes: int) -> type[asyncio.Protocol]:
    """Uvicorn's HTTP protocol with access to the connection and a small write buffer."""

    class AntiphonHTTPProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.app = _with_connection(self.app, transport, write_buffer_bytes)

    return AntiphonHTTPProtocol


def websocket_protocol(write_buffer_bytes: int) -> type[asyncio.Protocol]:
    """Uvicorn's WebSocket protocol with access to the connection and a small write buffer."""

    class AntiphonWebSocketProtocol(WebSocketsSansIOProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.app = _with_connection(self.app, self.transport, write_buffer_bytes)

        async def send(self, message: ASGISendEvent) -> None:
            await super().send(message)
            refused = message["type"] == "websocket.http.response.body"
            if refused and not message.get("more_body", False):
                # An upgrade that is refused with a response of ours is complete; the server
                # would report a handshake that is missing.
                self.handshake_complete = True

    return AntiphonWebSocketProtocol
