"""The items of a conversation, and how much of an answer was heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from app.audio.wire_formats import TICKS_PER_SECOND
from app.identifiers import new_identifier
from app.realtime.item_schema import (
    FunctionCallItem,
    FunctionOutputItem,
    InputAudio,
    InputImage,
    InputText,
    MessageItem,
    OutputAudio,
    OutputText,
)
from engine import AudioContent, ChatMessage, PictureContent, ToolCall, WordTiming

Role = Literal["system", "user", "assistant"]


class ItemStatus(StrEnum):
    """How far an item has come."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class PartKind(StrEnum):
    """The `type` of a content part."""

    INPUT_TEXT = "input_text"
    INPUT_AUDIO = "input_audio"
    INPUT_IMAGE = "input_image"
    OUTPUT_TEXT = "output_text"
    OUTPUT_AUDIO = "output_audio"


@dataclass(slots=True)
class Part:
    """One content part of a message.

    Attributes:
        kind: What it is.
        text: The text, the transcript, or a picture's address; None while it is not known yet.
        ticks: How long its sound lasts, as far as it was handed to the client.
        words: When each word is heard, for an answer's sound.
        timed: Whether the pipeline tells that; then a word without a time was not voiced yet.
        end: Up to which tick the sound was heard; None: all of it.
        said: The user's sound, where the Thinker hears it itself.
        seen: A picture, where the Thinker sees; its address is not kept then.
    """

    kind: PartKind
    text: str | None = None
    ticks: int = 0
    words: list[WordTiming] = field(default_factory=list)
    timed: bool = False
    end: int | None = None
    said: AudioContent | None = None
    seen: PictureContent | None = None

    @property
    def heard(self) -> str | None:
        """The text as far as it was heard; a word counts as heard from its middle on."""
        if self.end is None or self.text is None or self.kind is not PartKind.OUTPUT_AUDIO:
            return self.text
        if not self.words and not self.timed:
            share = min(self.end, self.ticks) / self.ticks if self.ticks else 0.0
            return self.text[: int(len(self.text) * share)]
        seconds = self.end / TICKS_PER_SECOND
        heard = [word for word in self.words if (word.start + word.end) / 2 <= seconds]
        told = self.text[: heard[-1].end_character] if heard else ""
        untold = self.text[len(told) :]
        ended = len(heard) == len(self.words) and self.end >= self.ticks
        # The text may be ahead of the voice; behind its last word only marks belong to it.
        return self.text if ended and not any(map(str.isalnum, untold)) else told

    def as_wire(self) -> dict[str, Any]:
        """The part as clients see it; never with its sound, which would not fit into a frame."""
        text = self.heard
        return {"type": self.kind.value, **({} if text is None else {_TEXT_KEYS[self.kind]: text})}


_TEXT_KEYS = {
    PartKind.INPUT_TEXT: "text",
    PartKind.INPUT_AUDIO: "transcript",
    PartKind.INPUT_IMAGE: "image_url",
    PartKind.OUTPUT_TEXT: "text",
    PartKind.OUTPUT_AUDIO: "transcript",
}


@dataclass(slots=True)
class Message:
    """Something said."""

    id: str
    role: Role
    parts: list[Part] = field(default_factory=list)
    status: ItemStatus = ItemStatus.COMPLETED

    def as_wire(self) -> dict[str, Any]:
        """The item as clients see it."""
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "message",
            "status": self.status.value,
            "role": self.role,
            "content": [part.as_wire() for part in self.parts],
        }

    @property
    def text(self) -> str:
        """What is said, in words."""
        spoken = (part for part in self.parts if part.kind is not PartKind.INPUT_IMAGE)
        return "\n".join(text for part in spoken if (text := part.heard))

    @property
    def sounds(self) -> tuple[AudioContent, ...]:
        """What the Thinker hears itself."""
        return tuple(part.said for part in self.parts if part.said is not None)

    @property
    def pictures(self) -> tuple[PictureContent, ...]:
        """What the Thinker sees."""
        return tuple(part.seen for part in self.parts if part.seen is not None)

    @property
    def read(self) -> str:
        """What the Thinker reads: all words, but those of sound that it hears."""
        parts = (part for part in self.parts if part.kind is not PartKind.INPUT_IMAGE)
        return "\n".join(text for part in parts if part.said is None and (text := part.heard))

    @property
    def sound(self) -> Part | None:
        """The part that is an answer's sound."""
        sounds = (part for part in self.parts if part.kind is PartKind.OUTPUT_AUDIO)
        return next(sounds, None)


@dataclass(slots=True)
class FunctionCall:
    """A call of a client's function."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: ItemStatus = ItemStatus.COMPLETED

    def as_wire(self) -> dict[str, Any]:
        """The item as clients see it."""
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "function_call",
            "status": self.status.value,
            "name": self.name,
            "call_id": self.call_id,
            "arguments": self.arguments,
        }


@dataclass(slots=True)
class FunctionOutput:
    """The result of a call."""

    id: str
    call_id: str
    output: str
    status: ItemStatus = ItemStatus.COMPLETED

    def as_wire(self) -> dict[str, Any]:
        """The item as clients see it."""
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "function_call_output",
            "status": self.status.value,
            "call_id": self.call_id,
            "output": self.output,
        }


Item = Message | FunctionCall | FunctionOutput


def item_from(
    wire: MessageItem | FunctionCallItem | FunctionOutputItem,
    pictures: Mapping[str, PictureContent],
) -> Item:
    """A client's item; it gets an identifier if it has none.

    Args:
        wire: What the client sent.
        pictures: Those of its event that are seen, by address.
    """
    item_id = wire.id or new_identifier("item")
    if isinstance(wire, FunctionCallItem):
        call_id = wire.call_id or new_identifier("call")
        return FunctionCall(item_id, call_id, wire.name, wire.arguments)
    if isinstance(wire, FunctionOutputItem):
        return FunctionOutput(item_id, wire.call_id, wire.output)
    return Message(item_id, wire.role, [_part_from(part, pictures) for part in wire.content])


def _part_from(
    part: InputText | InputAudio | InputImage | OutputText | OutputAudio,
    pictures: Mapping[str, PictureContent],
) -> Part:
    match part:
        case InputText():
            return Part(PartKind.INPUT_TEXT, part.text)
        case InputAudio():
            return Part(PartKind.INPUT_AUDIO, part.transcript)
        case InputImage():
            seen = pictures.get(part.image_url or "")
            return Part(PartKind.INPUT_IMAGE, None if seen else part.image_url, seen=seen)
        case OutputText():
            return Part(PartKind.OUTPUT_TEXT, part.text)
        case OutputAudio():
            return Part(PartKind.OUTPUT_AUDIO, part.transcript or "")


def as_messages(instructions: str, items: Sequence[Item]) -> tuple[ChatMessage, ...]:
    """What a Thinker reads: the instructions, then the items; what holds no words is left out."""
    messages = [ChatMessage("system", instructions)] if instructions else []
    for item in items:
        match item:
            case Message():
                if item.text or item.sounds or item.pictures:
                    messages.append(
                        ChatMessage(
                            item.role, item.read, sounds=item.sounds, pictures=item.pictures
                        )
                    )
            case FunctionOutput():
                messages.append(ChatMessage("tool", item.output, tool_call_id=item.call_id))
            case FunctionCall():
                call = ToolCall(item.call_id, item.name, item.arguments)
                last = messages[-1] if messages else None
                if last is not None and last.role == "assistant":
                    messages[-1] = ChatMessage("assistant", last.text, (*last.tool_calls, call))
                else:
                    messages.append(ChatMessage("assistant", "", (call,)))
    return tuple(messages)


MESSAGE_CHARACTERS = 20
"""What a message counts beside its text: its role and its marks."""

SOUND_CHARACTERS = 50
"""What a second of sound counts: a Thinker that hears reads about as many tokens of it."""


PICTURE_VALUES = 3 * 32 * 32
"""Values of a picture that count as a character: a Thinker that sees reads a token of them."""


def newest(messages: Sequence[ChatMessage], characters: int) -> tuple[ChatMessage, ...]:
    """The instructions and as many of the newest messages as fit.

    The last message is kept whatever its length is; the result of a call never without the call.
    Messages are left out a third of the room at a time, so that most turns begin with the same
    messages as the turn before and the Thinker need not read them again.

    Args:
        messages: The conversation, the oldest first.
        characters: How much text may be kept.
    """
    head = tuple(messages[:1]) if messages and messages[0].role == "system" else ()
    rest = messages[len(head) :]
    room = characters - sum(_length(message) for message in head)
    surplus = sum(_length(message) for message in rest) - room
    step = max(1, characters // 3)
    drop = -(-surplus // step) * step
    first = 0
    while drop > 0 and first < len(rest) - 1:
        drop -= _length(rest[first])
        first += 1
    while first < len(rest) - 1 and rest[first].role == "tool":
        first += 1
    return (*head, *rest[first:])


def _length(message: ChatMessage) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    heard = sum(len(sound.samples) / sound.sample_rate for sound in message.sounds)
    seen = sum(picture.pixels.size // PICTURE_VALUES for picture in message.pictures)
    return MESSAGE_CHARACTERS + len(message.text) + calls + round(SOUND_CHARACTERS * heard) + seen
