"""One response as the events that a client sees, each *added* with its *done*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.audio.wire_formats import TICKS_PER_MILLISECOND, TICKS_PER_SECOND
from app.audio.worker import to_base64
from app.identifiers import new_identifier
from app.realtime.conversation import Conversation
from app.realtime.items import FunctionCall, Item, ItemStatus, Message, Part, PartKind
from app.realtime.machine_events import Outcome, Reason
from app.realtime.plan import ResponsePlan
from app.speech.usage import audio_tokens
from engine import ToolCallPayload, UsagePayload, WordTiming

LONGEST_DELTA = 200 * TICKS_PER_MILLISECOND
SHORTEST_DELTA = 40 * TICKS_PER_MILLISECOND
"""How much sound one delta carries, in ticks; the last one may carry less."""


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A piece of an answer's text and when it is heard, in seconds of the answer."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event for the client.

    Attributes:
        fields: The event without its `event_id`.
        ticks: How much of an answer's sound it carries.
        item: The item whose sound that is.
        spoken: Words whose times became known with that sound.
    """

    fields: dict[str, Any]
    ticks: int = 0
    item: str | None = None
    spoken: tuple[SpokenText, ...] = ()


class ResponseOutput:
    """Turns what the engine makes into events, and into items of the conversation.

    Attributes:
        plan: What the response is asked to be.
        message: What is said, as soon as something is.
    """

    def __init__(
        self, plan: ResponsePlan, conversation: Conversation | None, *, timed: bool = False
    ) -> None:
        """Says nothing yet.

        Args:
            plan: What the response is asked to be.
            conversation: Takes the items in; None for a response beside it.
            timed: Whether the times of words come with the sound.
        """
        self.plan = plan
        self._timed = timed
        self.message: Message | None = None
        self._conversation = conversation
        self._items: list[Item] = []
        self._pending = b""
        self._untold: list[SpokenText] = []
        self._told_characters = 0
        self._format = plan.config.output_format

    def created(self) -> list[ServerEvent]:
        """The response's first event."""
        return [ServerEvent({"type": "response.created", "response": self._response(None, {})})]

    def text(self, delta: str) -> list[ServerEvent]:
        """More of the answer's words."""
        if not delta:
            return []
        events, part = self._part()
        part.text = (part.text or "") + delta
        name = "output_audio_transcript" if self.plan.spoken else "output_text"
        return [*events, self._delta(f"response.{name}.delta", delta)]

    def sound(self, data: bytes, words: tuple[WordTiming, ...]) -> list[ServerEvent]:
        """More of the answer's sound, in the client's format; in deltas of a sensible length."""
        events, part = self._part()
        part.words.extend(words)
        for word in words:
            text = (part.text or "")[self._told_characters : word.end_character]
            self._told_characters = word.end_character
            self._untold.append(SpokenText(text, word.start, word.end))
        self._pending += data
        longest = self._format.size(LONGEST_DELTA)
        while len(self._pending) >= longest:
            events.append(self._sound_delta(part, longest))
        if len(self._pending) >= self._format.size(SHORTEST_DELTA):
            events.append(self._sound_delta(part, len(self._pending)))
        return events

    def call(self, call: ToolCallPayload) -> list[ServerEvent]:
        """A call of one of the client's functions."""
        item = FunctionCall(
            new_identifier("item"), call.call_id, call.name, "", ItemStatus.IN_PROGRESS
        )
        events = self._added(item)
        where = {
            "response_id": self.plan.response_id,
            "item_id": item.id,
            "output_index": len(self._items) - 1,
            "call_id": call.call_id,
        }
        item.arguments = call.arguments
        item.status = ItemStatus.COMPLETED
        kind = "response.function_call_arguments"
        delta = {"type": f"{kind}.delta", **where, "delta": call.arguments}
        done = {"type": f"{kind}.done", **where, "name": call.name, "arguments": call.arguments}
        return [*events, ServerEvent(delta), ServerEvent(done), *self._done(item)]

    def interrupt(self, ticks: int, dropped: int) -> None:
        """Nothing more will be heard.

        Args:
            ticks: Up to where the answer was heard.
            dropped: How much sound was taken back before it was sent.
        """
        self._pending = b""
        sound = self.message.sound if self.message is not None else None
        if sound is not None:
            sound.ticks -= dropped
            if sound.end is None:
                sound.end = min(ticks, sound.ticks)

    def finish(
        self,
        outcome: Outcome,
        reason: Reason | None = None,
        *,
        error: dict[str, Any] | None = None,
        usage: UsagePayload | None = None,
    ) -> list[ServerEvent]:
        """The last events; nothing comes after them."""
        whole = outcome is Outcome.COMPLETED
        failed = outcome is Outcome.FAILED
        events = []
        if self.message is not None:
            events = self._finish_message(self.message, whole=whole, failed=failed)
        details: dict[str, Any] | None = None
        if not whole:
            details = {"type": outcome.value}
            details |= {} if reason is None else {"reason": reason.value}
            details |= {} if error is None else {"error": error}
        final = {
            "status": outcome.value,
            "status_details": details,
            "usage": self._usage(usage),
        }
        done = {"type": "response.done", "response": self._response(outcome, final)}
        return [*events, ServerEvent(done)]

    def _finish_message(self, message: Message, *, whole: bool, failed: bool) -> list[ServerEvent]:
        part = message.parts[0]
        message.status = ItemStatus.COMPLETED if whole else ItemStatus.INCOMPLETE
        where = self._where()
        events = []
        if self._pending:
            events.append(self._sound_delta(part, len(self._pending)))
        if failed and part.end is None:
            part.end = part.ticks  # words that were never voiced were not heard
        text = part.heard or ""
        if part.kind is PartKind.OUTPUT_AUDIO:
            events.append(ServerEvent({"type": "response.output_audio.done", **where}))
            done = {"type": "response.output_audio_transcript.done", **where, "transcript": text}
        else:
            done = {"type": "response.output_text.done", **where, "text": text}
        shown = _shown(part)
        part_done = {"type": "response.content_part.done", **where, "part": shown}
        return [*events, ServerEvent(done), ServerEvent(part_done), *self._done(message)]

    def _part(self) -> tuple[list[ServerEvent], Part]:
        """The part that the answer goes into, with the events of its beginning if it is new."""
        if self.message is not None:
            return [], self.message.parts[0]
        kind = PartKind.OUTPUT_AUDIO if self.plan.spoken else PartKind.OUTPUT_TEXT
        message = Message(new_identifier("item"), "assistant", status=ItemStatus.IN_PROGRESS)
        events = self._added(message)
        part = Part(kind, "", timed=self._timed)
        message.parts.append(part)
        self.message = message
        added = {"type": "response.content_part.added", **self._where(), "part": _shown(part)}
        return [*events, ServerEvent(added)], part

    def _added(self, item: Item) -> list[ServerEvent]:
        self._items.append(item)
        events = [self._item_event("response.output_item.added", item)]
        if self._conversation is not None:
            previous = self._conversation.append(item)
            events.append(_in_conversation("conversation.item.added", item, previous))
        return events

    def _done(self, item: Item) -> list[ServerEvent]:
        events = [self._item_event("response.output_item.done", item)]
        if self._conversation is not None:
            known = self._conversation.find(item.id) is not None
            previous = self._conversation.previous_of(item.id) if known else None
            events.append(_in_conversation("conversation.item.done", item, previous))
        return events

    def _item_event(self, kind: str, item: Item) -> ServerEvent:
        return ServerEvent(
            {
                "type": kind,
                "response_id": self.plan.response_id,
                "output_index": self._items.index(item),
                "item": item.as_wire(),
            }
        )

    def _where(self) -> dict[str, Any]:
        assert self.message is not None
        return {
            "response_id": self.plan.response_id,
            "item_id": self.message.id,
            "output_index": self._items.index(self.message),
            "content_index": 0,
        }

    def _delta(self, kind: str, delta: str) -> ServerEvent:
        return ServerEvent({"type": kind, **self._where(), "delta": delta})

    def _sound_delta(self, part: Part, size: int) -> ServerEvent:
        data, self._pending = self._pending[:size], self._pending[size:]
        ticks = self._format.ticks(len(data))
        part.ticks += ticks
        event = self._delta("response.output_audio.delta", to_base64(data))
        assert self.message is not None
        spoken, self._untold = tuple(self._untold), []
        return ServerEvent(event.fields, ticks, self.message.id, spoken)

    def _response(self, outcome: Outcome | None, final: dict[str, Any]) -> dict[str, Any]:
        return {
            **self.plan.as_wire(),
            "status": "in_progress" if outcome is None else outcome.value,
            "status_details": None,
            "output": [item.as_wire() for item in self._items],
            "usage": None,
            **final,
        }

    def _usage(self, usage: UsagePayload | None) -> dict[str, Any]:
        """What was counted; an answer that was stopped is counted as far as it came."""
        sound = self.message.sound if self.message is not None else None
        audio = 0 if sound is None else audio_tokens(sound.ticks / TICKS_PER_SECOND)
        counted = usage or UsagePayload(0, 0, 0, False)
        return {
            "total_tokens": counted.input_tokens + counted.output_tokens + audio,
            "input_tokens": counted.input_tokens,
            "output_tokens": counted.output_tokens + audio,
            "input_token_details": {
                "text_tokens": counted.input_tokens,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": counted.cached_tokens,
                "cached_tokens_details": {
                    "text_tokens": counted.cached_tokens,
                    "audio_tokens": 0,
                    "image_tokens": 0,
                },
            },
            "output_token_details": {
                "text_tokens": counted.output_tokens,
                "audio_tokens": audio,
            },
        }


def _shown(part: Part) -> dict[str, Any]:
    """A part in the events about parts, where the kinds have shorter names."""
    if part.kind is PartKind.OUTPUT_AUDIO:
        return {"type": "audio", "transcript": part.heard or ""}
    return {"type": "text", "text": part.text or ""}


def _in_conversation(kind: str, item: Item, previous: str | None) -> ServerEvent:
    return ServerEvent({"type": kind, "previous_item_id": previous, "item": item.as_wire()})
