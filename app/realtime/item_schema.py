"""Conversation items as clients send them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.json_text import JsonObjectText
from app.realtime.wire import Wire

Status = Literal["completed", "incomplete", "in_progress"]
ItemId = Annotated[str, Field(min_length=1, max_length=512)]


class InputText(Wire):
    """Text of a user or of the system."""

    type: Literal["input_text"]
    text: str


class InputAudio(Wire):
    """Speech of a user: base64 audio in the session's input format, or its transcript alone."""

    type: Literal["input_audio"]
    audio: str | None = None
    transcript: str | None = None


class InputImage(Wire):
    """A picture; where no Thinker sees, its address is kept and shown back."""

    type: Literal["input_image"]
    image_url: str | None = None
    detail: Literal["auto", "low", "high"] | None = None


class OutputText(Wire):
    """Text of the assistant."""

    type: Literal["output_text", "text"]
    text: str = ""


class OutputAudio(Wire):
    """Speech of the assistant; only the transcript counts."""

    type: Literal["output_audio", "audio"]
    audio: str | None = None
    transcript: str | None = None


ContentPart = Annotated[
    InputText | InputAudio | InputImage | OutputText | OutputAudio, Field(discriminator="type")
]


class ItemBase(Wire):
    """What all items have."""

    id: ItemId | None = None
    object: Literal["realtime.item"] | None = None
    status: Status | None = None


class MessageItem(ItemBase):
    """Something said."""

    type: Literal["message"]
    role: Literal["system", "user", "assistant"]
    content: list[ContentPart]
    phase: str | None = None


class FunctionCallItem(ItemBase):
    """A call of a client's function."""

    type: Literal["function_call"]
    name: str
    arguments: JsonObjectText
    call_id: str | None = None


class FunctionOutputItem(ItemBase):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: str
    output: str


class ItemReference(Wire):
    """An item of the conversation, in a response's own input."""

    type: Literal["item_reference"]
    id: str


NewItem = Annotated[
    MessageItem | FunctionCallItem | FunctionOutputItem, Field(discriminator="type")
]
ResponseInput = Annotated[
    MessageItem | FunctionCallItem | FunctionOutputItem | ItemReference,
    Field(discriminator="type"),
]
