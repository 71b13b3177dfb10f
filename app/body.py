"""Reading a request's body within a limit."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request

from app.errors import ApiError


async def read_body(request: Request, limit: int) -> bytes:
    """Reads the whole body.

    Args:
        request: The request.
        limit: Most bytes that are read; the rest is never taken in.

    Raises:
        ApiError: 413, the body is larger.
        ClientDisconnect: The client went away.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is larger than {limit} bytes.",
                code="request_too_large",
                # The rest of the body is still on its way; this connection is of no more use.
                headers={"Connection": "close"},
            )
    return bytes(body)
