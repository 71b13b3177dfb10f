"""The events of the text-in WebSocket.

A client sends one JSON object a text frame. Every event may carry an `event_id`, which an `error`
that it causes repeats. The server's events all have an `event_id` of their own.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from app.audio.formats import AudioFormat
from app.errors import ApiError, invalid
from app.identifiers import new_identifier
from app.speech.schema import (
    FormatField,
    InstructionsField,
    SeedField,
    SpeedField,
    TimestampsField,
    VoiceField,
    WireModel,
    explain,
)

ContextId = Annotated[
    str,
    Field(
        pattern=r"^[\x21-\x7e]{1,128}$",
        description="Names a context on this socket: up to 128 visible ASCII characters.",
    ),
]


class SessionOptions(WireModel):
    """What holds for the whole socket.

    Attributes:
        audio: `base64` sends audio inside `audio.delta` events. `binary` sends it in binary
            frames: one byte with the length of the context's name, the name, the audio.
    """

    audio: Literal["base64", "binary"] = "base64"


class _ClientEvent(WireModel):
    event_id: Annotated[str | None, Field(max_length=512)] = None


class SessionUpdate(_ClientEvent):
    """Changes what holds for the whole socket; answered by `session.updated`."""

    type: Literal["session.update"]
    session: SessionOptions


class ContextCreate(_ClientEvent):
    """Opens a context; answered by `context.created`. Without a name the server invents one."""

    type: Literal["context.create"]
    context_id: ContextId | None = None
    model: str | None = None
    voice: VoiceField | None = None
    speed: SpeedField = 1.0
    response_format: FormatField = AudioFormat.PCM
    seed: SeedField = None
    instructions: InstructionsField = None
    timestamps: TimestampsField = None


class TextAppend(_ClientEvent):
    """Adds text, a token or a page. It is spoken as soon as its sound is certain."""

    type: Literal["text.append"]
    context_id: ContextId
    text: str


class TextFlush(_ClientEvent):
    """Has the text so far spoken to its end; answered by `context.flushed` behind its audio."""

    type: Literal["text.flush"]
    context_id: ContextId


class TextDone(_ClientEvent):
    """Ends a context's text; answered by `context.done` behind the last audio."""

    type: Literal["text.done"]
    context_id: ContextId


class ContextCancel(_ClientEvent):
    """Ends a context at once; answered by `context.cancelled`, behind which nothing of it comes."""

    type: Literal["context.cancel"]
    context_id: ContextId


class SessionClose(_ClientEvent):
    """Cancels all contexts; answered by `session.closed` and the end of the socket."""

    type: Literal["session.close"]


ClientEvent = (
    SessionUpdate | ContextCreate | TextAppend | TextFlush | TextDone | ContextCancel | SessionClose
)

_EVENT_TYPES = (
    "session.update",
    "context.create",
    "text.append",
    "text.flush",
    "text.done",
    "context.cancel",
    "session.close",
)

_parser: TypeAdapter[ClientEvent] = TypeAdapter(Annotated[ClientEvent, Field(discriminator="type")])


class EventError(Exception):
    """A client event that cannot be followed.

    Attributes:
        error: What the client is told.
        client_event_id: The event's own identifier, if it had one.
        context_id: The context it meant, if it named one.
    """

    def __init__(
        self, error: ApiError, client_event_id: str | None = None, context_id: str | None = None
    ) -> None:
        """Wraps what the client is told."""
        super().__init__(error.message)
        self.error = error
        self.client_event_id = client_event_id
        self.context_id = context_id


def parse_event(text: str) -> ClientEvent:
    """Reads one client event.

    Raises:
        EventError: It is malformed, unknown or has a wrong value.
    """
    try:
        return _parser.validate_json(text)
    except ValidationError as failure:
        names = _names_in(text)
        raise EventError(
            _explain(failure), names.get("event_id"), names.get("context_id")
        ) from None


def _explain(failure: ValidationError) -> ApiError:
    mistake = failure.errors(include_url=False)[0]
    supported = ", ".join(f"'{event_type}'" for event_type in _EVENT_TYPES)
    if mistake["type"] == "union_tag_not_found":
        message = f"Missing required parameter: 'type'. Supported values are: {supported}."
        return invalid("type", message, "missing_required_parameter")
    if mistake["type"] == "union_tag_invalid":
        message = f"Invalid value: {mistake['ctx']['tag']!r}. Supported values are: {supported}."
        return invalid("type", message, "invalid_value")
    return explain(failure, skip=1)


def _names_in(text: str) -> dict[str, str]:
    """The names that an invalid event carries, so that its error can be told apart."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(event, dict):
        return {}
    named = {key: event.get(key) for key in ("event_id", "context_id")}
    return {
        key: value for key, value in named.items() if isinstance(value, str) and len(value) <= 512
    }


def server_event(event_type: str, **fields: Any) -> str:
    """One event of the server as JSON text; fields that are None are left out."""
    present = {key: value for key, value in fields.items() if value is not None}
    event = {"type": event_type, "event_id": new_identifier("event"), **present}
    return json.dumps(event, separators=(",", ":"))


def error_event(error: EventError) -> str:
    """The event that tells a client what was wrong with one of its events."""
    body = {**error.error.as_dict(), "event_id": error.client_event_id}
    return server_event("error", context_id=error.context_id, error=body)


def binary_audio(context_id: str, data: bytes) -> bytes:
    """A binary frame: one byte with the length of the context's name, the name, the audio."""
    name = context_id.encode("ascii")
    return bytes([len(name)]) + name + data
