"""Gives every request its identifier and its arrival time, and every mistake an answer."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from email.utils import formatdate

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.connection import ConnectionCutError
from app.errors import internal_error
from app.identifiers import new_identifier
from app.timeline import TraceContext

logger = logging.getLogger(__name__)

REQUEST_ID_HEADER = "X-Request-Id"

_KEY = "antiphon.request"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What is known about a request before anything reads it.

    Attributes:
        request_id: Its identifier, unique among live requests.
        arrived: When it came, on `time.monotonic`.
        trace: The trace that its client says it belongs to.
    """

    request_id: str
    arrived: float
    trace: TraceContext


def context_of(connection: HTTPConnection) -> RequestContext:
    """The context of a request."""
    context = connection.scope[_KEY]
    assert isinstance(context, RequestContext)
    return context


class RequestContextMiddleware:
    """Adds the identifier to each response and turns unforeseen exceptions into a 500."""

    def __init__(self, app: ASGIApp) -> None:
        """Wraps an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        context = RequestContext(new_identifier("req"), time.monotonic(), _trace_of(scope))
        scope[_KEY] = context
        started = False

        async def send_with_identifier(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID_HEADER] = context.request_id
                headers["Date"] = formatdate(usegmt=True)
            await send(message)

        try:
            await self._app(scope, receive, send_with_identifier)
        except ConnectionCutError:
            raise
        except Exception:
            if started or scope["type"] != "http":
                raise
            logger.exception("Request %s raised.", context.request_id)
            await internal_error().response()(scope, receive, send_with_identifier)


def _trace_of(scope: Scope) -> TraceContext:
    headers = Headers(scope=scope)
    return TraceContext(headers.get("traceparent", ""), headers.get("tracestate", ""))
