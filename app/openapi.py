"""What the API's documentation says beyond what FastAPI finds out by itself."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.audio.formats import AudioFormat
from app.speech.schema import SpeechRequest

_REFERENCE = "#/components/schemas/{model}"

_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "One sentence for people."},
                "type": {"type": "string"},
                "param": {
                    "type": ["string", "null"],
                    "description": "The request field at fault.",
                },
                "code": {
                    "type": ["string", "null"],
                    "description": "A stable word for programs.",
                },
            },
        }
    },
}

_ERROR_CONTENT = {"application/json": {"schema": {"$ref": _REFERENCE.format(model="Error")}}}


def _error(description: str, **headers: str) -> dict[str, Any]:
    result: dict[str, Any] = {"description": description, "content": _ERROR_CONTENT}
    if headers:
        result["headers"] = {
            name.replace("_", "-"): {"schema": {"type": "string"}, "description": text}
            for name, text in headers.items()
        }
    return result


_RETRY_AFTER = "Seconds until another attempt makes sense."

ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    401: _error("The API key is missing or wrong; only when the server was given keys."),
    404: _error("There is no such model."),
    503: _error("The server is starting, full or shutting down.", Retry_After=_RETRY_AFTER),
}

REQUEST_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: _error("A field of the request has a wrong value; `param` names it."),
    **ERROR_RESPONSES,
    413: _error("The body is too large."),
}
"""What a request with a body may get."""

WORK_RESPONSES: dict[int | str, dict[str, Any]] = {
    **REQUEST_RESPONSES,
    500: _error("The server or a stage of it failed before anything was sent."),
    504: _error("The request's deadline passed before anything was sent."),
}
"""What a request that the engine works for may get."""

TIMELINE_RESPONSES: dict[int | str, dict[str, Any]] = {
    401: ERROR_RESPONSES[401],
    404: _error("The request is not among the last ones that were made with this key."),
}

_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}

_EVENT_STREAM = {
    "schema": {
        "type": "string",
        "description": "Events, each one `data:` line of JSON: `speech.word` (only with "
        "`timestamps`), `speech.audio.delta` with base64 `audio`, and at the end "
        "`speech.audio.done` with `usage`. The audio of all deltas together is the body that "
        "`stream_format: audio` sends. A failure is `event: error` with an error body; nothing "
        "follows it.",
    },
    "example": 'data: {"type":"speech.audio.delta","audio":"UklGRv…"}\n\n'
    'data: {"type":"speech.audio.done","usage":{"input_tokens":14,"output_tokens":22,'
    '"total_tokens":36}}\n\n',
}

SPEECH_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The audio, streamed while it is made: 24 kHz, one channel. `pcm` is "
        "signed 16-bit little-endian without a header. A stream of bare audio that fails midway "
        "is broken off without its proper end.",
        "content": {
            **{audio_format.media_type: _BINARY for audio_format in AudioFormat},
            "text/event-stream": _EVENT_STREAM,
        },
        "headers": {
            "X-Request-Id": {
                "schema": {"type": "string"},
                "description": "Names the request in the server's log.",
            },
            "X-Antiphon-Warning": {
                "schema": {"type": "string"},
                "description": "Characters of the input that could not be spoken and were left "
                'out, such as `left-out; count=1; characters="U+4E16"`.',
            },
            "Server-Timing": {
                "schema": {"type": "string"},
                "description": "`first-audio;dur=` and the milliseconds until first audio.",
            },
            "Content-Length": {
                "schema": {"type": "integer"},
                "description": "Only with `stream: false`.",
            },
        },
    },
    **WORK_RESPONSES,
}

SPEECH_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"$ref": _REFERENCE.format(model="SpeechRequest")},
            "example": {
                "model": "tts-1",
                "input": "The quick brown fox jumps over the lazy dog.",
                "voice": "alloy",
            },
        }
    },
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=app.description,
            routes=app.routes,
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        request = SpeechRequest.model_json_schema(ref_template=_REFERENCE)
        schemas.update(request.pop("$defs", {}))
        schemas["SpeechRequest"] = request
        schemas["Error"] = _ERROR_SCHEMA
        _replace_validation_errors(document)
        app.openapi_schema = document
    return app.openapi_schema


def _replace_validation_errors(document: dict[str, Any]) -> None:
    """FastAPI announces its own 422 body, which this server never sends."""
    unprocessable = str(int(HTTPStatus.UNPROCESSABLE_ENTITY))
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop(unprocessable, None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
