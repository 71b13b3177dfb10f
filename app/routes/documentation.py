"""`GET /docs`: the documentation of the API, readable without the internet.

The page that FastAPI brings loads its scripts from elsewhere, which a server on a closed network
cannot.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import HTMLResponse

router = APIRouter()

TEXT_STREAM = """\
WebSocket /v1/audio/speech/stream: text in while it is being written, speech out as it is made

Each message is one JSON object in a text frame. Every client event may carry an `event_id`, which
an `error` that it causes repeats. Browsers give the API key as the subprotocol
`openai-insecure-api-key.<key>` beside `realtime`; other clients as `Authorization: Bearer <key>`.

Client events
  context.create   context_id, voice, speed, response_format (pcm unless given), seed, model,
                   instructions, timestamps ("word"); all optional   -> context.created
  text.append      context_id, text: a token or a page
  text.flush       context_id   -> context.flushed, behind the sound of all text so far
  text.done        context_id   -> the rest of the sound, then context.done
  context.cancel   context_id   -> context.cancelled; nothing of the context comes after it
  session.update   session: {"audio": "base64" or "binary"}   -> session.updated
  session.close    cancels all contexts   -> session.closed, then the socket closes with 1000

Server events
  session.created, session.updated   session: its options and limits
  context.created    the context with everything as it will be used
  audio.delta        context_id, audio: base64. With "binary" a binary frame instead: one byte with
                     the length of the context_id, the context_id, the audio
  word               context_id, word, start and end in seconds, start_character, end_character
  context.flushed    context_id, client_event_id: that of the text.flush
  context.done       context_id, seconds, usage, left_out: characters that could not be spoken
  context.cancelled  context_id
  context.failed     context_id, error
  error              error: {message, type, param, code, event_id}; the socket stays open

A context ends in exactly one of context.done, context.cancelled and context.failed. Its name can
be used again afterwards.
"""
"""What OpenAPI has no words for; part of the document's description."""


@router.get("/docs", include_in_schema=False)
def documentation() -> HTMLResponse:
    """The page, which reads /openapi.json; on a thread of the framework, since it reads a file."""
    page = files("app.routes").joinpath("documentation.html").read_text(encoding="utf-8")
    return HTMLResponse(page)
