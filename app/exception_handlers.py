"""Turns every exception that ends a request into OpenAI's error body."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.errors import ApiError, from_engine_error, invalid
from engine import EngineError


async def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error.response()


async def _engine_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    return from_engine_error(error).response()


async def _validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    mistake = error.errors()[0]
    return invalid(str(mistake["loc"][-1]), str(mistake["msg"]), "invalid_value").response()


async def _client_left(_request: Request, _error: Exception) -> Response:
    """Nobody receives it; 499 is what logs use for a client that left."""
    return Response(status_code=499)


async def _http_exception(request: Request, error: Exception) -> Response:
    """Unknown paths, wrong methods and whatever else the framework refuses."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    line = f"{request.method} {request.url.path}"
    if error.status_code == HTTPStatus.NOT_FOUND:
        return ApiError(404, f"Invalid URL ({line}).", code="unknown_url").response()
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        message = f"Not allowed to {request.method} on {request.url.path}."
        return ApiError(405, message, code="method_not_allowed", headers=headers).response()
    return ApiError(error.status_code, f"{error.detail} ({line}).", headers=headers).response()


def install_exception_handlers(app: FastAPI) -> None:
    """Registers the handlers."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(EngineError, _engine_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(ClientDisconnect, _client_left)
    app.add_exception_handler(HTTPException, _http_exception)
