"""Errors as clients see them: a status and OpenAI's error body."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from engine import EngineError, EngineOverloadedError, ErrorCode, StageError

_STATUS_OF_CODE = {
    ErrorCode.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    ErrorCode.OVERLOADED: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.DEADLINE_EXCEEDED: HTTPStatus.GATEWAY_TIMEOUT,
    ErrorCode.SLOW_CLIENT: HTTPStatus.REQUEST_TIMEOUT,
    ErrorCode.STAGE_FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.CANCELLED: HTTPStatus.CONFLICT,
    ErrorCode.SHUTTING_DOWN: HTTPStatus.SERVICE_UNAVAILABLE,
}

_TYPE_OF_STATUS = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
}

SHUTDOWN_RETRY_SECONDS = 5.0
"""When to try again after this server went down; another one may have taken its place."""


class ApiError(Exception):
    """A request that is answered with an error.

    Attributes:
        status: The HTTP status.
        message: One plain sentence for people.
        param: The request field at fault, if one is.
        code: A stable word for programs, if there is one.
        headers: Further response headers.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Collects what the response needs."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers or {}

    @property
    def kind(self) -> str:
        """OpenAI's `type` of this error."""
        if self.status in _TYPE_OF_STATUS:
            return _TYPE_OF_STATUS[HTTPStatus(self.status)]
        return "server_error" if self.status >= 500 else "invalid_request_error"

    def as_dict(self) -> dict[str, Any]:
        """The value of the body's `error`."""
        return {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }

    def response(self) -> JSONResponse:
        """The whole response."""
        return JSONResponse({"error": self.as_dict()}, self.status, headers=self.headers)


def invalid(param: str | None, message: str, code: str | None = None) -> ApiError:
    """A 400 that names the field at fault."""
    return ApiError(HTTPStatus.BAD_REQUEST, message, param=param, code=code)


def retry_later(message: str, code: str, seconds: float) -> ApiError:
    """A 503 that says when to come back, rounded up to whole seconds."""
    headers = {"Retry-After": str(max(1, math.ceil(seconds)))}
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, message, code=code, headers=headers)


def from_stage_error(error: StageError) -> ApiError:
    """What a client is told about a failure inside the engine."""
    if error.code is ErrorCode.SHUTTING_DOWN:
        return retry_later(error.message, error.code, SHUTDOWN_RETRY_SECONDS)
    if error.code is ErrorCode.INVALID_REQUEST:
        param = "input" if error.parameter == "text" else error.parameter
        return invalid(param, error.message, "invalid_value")
    # Clients repeat 5xx and 409 by themselves, which would be in vain where time or a decision
    # ended the request.
    final = error.code in (ErrorCode.DEADLINE_EXCEEDED, ErrorCode.CANCELLED)
    headers = {"x-should-retry": "false"} if final else {}
    return ApiError(_STATUS_OF_CODE[error.code], error.message, code=error.code, headers=headers)


def from_engine_error(error: EngineError) -> ApiError:
    """What a client is told about an exception of the engine."""
    if isinstance(error, EngineOverloadedError):
        return retry_later(str(error), ErrorCode.OVERLOADED, error.retry_after)
    return from_stage_error(error.error)


def internal_error() -> ApiError:
    """What a client is told about a mistake of ours; details go to the log only."""
    return ApiError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The server made a mistake while it handled this request.",
        code="internal_error",
    )
