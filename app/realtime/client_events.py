"""The events that clients send, checked field by field."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError
from pydantic_core import from_json

from app.realtime.failure import EventError, explain
from app.realtime.item_schema import ItemId, NewItem, ResponseInput
from app.realtime.session_schema import (
    AudioFormatPatch,
    FunctionTool,
    MaximumTokens,
    Modalities,
    OutputPatch,
    SessionPatch,
    ToolChoice,
)
from app.realtime.wire import Wire


class ClientEvent(Wire):
    """What all events have."""

    event_id: Annotated[str, Field(max_length=512)] | None = None


class SessionUpdate(ClientEvent):
    """Changes the session's settings."""

    type: Literal["session.update"]
    session: SessionPatch


class AudioAppend(ClientEvent):
    """More of the user's sound."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class AudioCommit(ClientEvent):
    """What was appended is a turn."""

    type: Literal["input_audio_buffer.commit"]


class AudioClear(ClientEvent):
    """What was appended is forgotten."""

    type: Literal["input_audio_buffer.clear"]


class ItemCreate(ClientEvent):
    """Adds an item to the conversation."""

    type: Literal["conversation.item.create"]
    item: NewItem
    previous_item_id: str | None = None


class ItemRetrieve(ClientEvent):
    """Asks for an item."""

    type: Literal["conversation.item.retrieve"]
    item_id: ItemId


class ItemTruncate(ClientEvent):
    """Says how much of an answer was heard, in milliseconds of its audio."""

    type: Literal["conversation.item.truncate"]
    item_id: ItemId
    content_index: Annotated[int, Field(ge=0)] = 0
    audio_end_ms: Annotated[int, Field(ge=0)]


class ItemDelete(ClientEvent):
    """Removes an item."""

    type: Literal["conversation.item.delete"]
    item_id: ItemId


class ResponseAudio(Wire):
    """`response.audio`."""

    output: OutputPatch | None = None


MetadataKey = Annotated[str, Field(max_length=64)]
MetadataValue = Annotated[str, Field(max_length=512)]


class ResponseOptions(Wire):
    """What is different about one response."""

    nullable: ClassVar[frozenset[str]] = frozenset({"metadata"})

    output_modalities: Modalities | None = None
    instructions: str | None = None
    audio: ResponseAudio | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: MaximumTokens | None = None
    conversation: Literal["auto", "none"] = "auto"
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)] | None = None
    input: list[ResponseInput] | None = None
    prompt: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None


class ResponseCreate(ClientEvent):
    """Asks for an answer."""

    type: Literal["response.create"]
    response: ResponseOptions = Field(default_factory=ResponseOptions)


class ResponseCancel(ClientEvent):
    """Stops an answer."""

    type: Literal["response.cancel"]
    response_id: str | None = None


class OutputClear(ClientEvent):
    """Forgets audio that waits to be played; only transports that play for the client have it."""

    type: Literal["output_audio_buffer.clear"]


AnyClientEvent = (
    SessionUpdate
    | AudioAppend
    | AudioCommit
    | AudioClear
    | ItemCreate
    | ItemRetrieve
    | ItemTruncate
    | ItemDelete
    | ResponseCreate
    | ResponseCancel
    | OutputClear
)

_EVENTS: dict[str, type[ClientEvent]] = {
    "session.update": SessionUpdate,
    "input_audio_buffer.append": AudioAppend,
    "input_audio_buffer.commit": AudioCommit,
    "input_audio_buffer.clear": AudioClear,
    "conversation.item.create": ItemCreate,
    "conversation.item.retrieve": ItemRetrieve,
    "conversation.item.truncate": ItemTruncate,
    "conversation.item.delete": ItemDelete,
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
    "output_audio_buffer.clear": OutputClear,
}

__all__ = ["AnyClientEvent", "AudioFormatPatch", "parse_client_event"]


def parse_client_event(text: str | bytes) -> ClientEvent:
    """Reads one frame.

    Raises:
        EventError: It is no event that is known here; names the event and the field at fault.
    """
    try:
        data = from_json(text)
    except ValueError:
        message = "The frame is not valid JSON."
        raise EventError(message, "invalid_json") from None
    if not isinstance(data, dict):
        raise EventError("An event must be a JSON object.", "invalid_event")
    event_id = data.get("event_id")
    try:
        return _parse(data)
    except EventError as refusal:
        if isinstance(event_id, str):
            refusal.event_id = event_id
        raise


def _parse(data: dict[str, Any]) -> ClientEvent:
    kind = data.get("type")
    if kind is None:
        raise EventError(
            "Missing required parameter: 'type'.", "missing_required_parameter", "type"
        )
    event = _EVENTS.get(kind) if isinstance(kind, str) else None
    if event is None:
        names = ", ".join(f"'{name}'" for name in _EVENTS)
        message = f"Invalid value: {str(kind)[:80]!r}. Supported values are: {names}."
        raise EventError(message, "invalid_value", "type")
    try:
        return event.model_validate(data)
    except ValidationError as failure:
        raise explain(failure, data) from None
