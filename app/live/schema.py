"""The events that Live clients send."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import from_json

from app.audio.wire_formats import WireFormat
from app.realtime.failure import EventError, explain
from app.realtime.session_schema import VoiceReference
from app.realtime.wire import Wire


class LiveEvent(Wire):
    """What all events have."""

    event_id: Annotated[str, Field(max_length=512)] | None = None


class LiveOutput(Wire):
    """`audio.output`."""

    voice: str | VoiceReference | None = None


class LiveFormat(Wire):
    """A format of audio: 16-bit samples at 24 or 16 kHz, or G.711 at 8 kHz."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"]
    rate: int | None = None

    @property
    def wire_format(self) -> WireFormat:
        """The same as the rest of the server calls it."""
        return _FORMATS[self.type, self.rate]

    @model_validator(mode="after")
    def _check_rate(self) -> LiveFormat:
        if (self.type, self.rate) not in _FORMATS:
            known = [rate for kind, rate in _FORMATS if kind == self.type and rate is not None]
            rates = " or ".join(str(rate) for rate in known)
            raise ValueError(f"the rate of {self.type} is {rates}, not {self.rate}.")
        return self


_FORMATS: dict[tuple[str, int | None], WireFormat] = {
    ("audio/pcm", 24_000): WireFormat.PCM,
    ("audio/pcm", 16_000): WireFormat.PCM_16_KHZ,
    ("audio/pcm", None): WireFormat.PCM,
    ("audio/pcmu", 8_000): WireFormat.MU_LAW,
    ("audio/pcmu", None): WireFormat.MU_LAW,
    ("audio/pcma", 8_000): WireFormat.A_LAW,
    ("audio/pcma", None): WireFormat.A_LAW,
}


class LiveAudio(Wire):
    """`audio`: one format both ways."""

    format: LiveFormat | None = None
    output: LiveOutput | None = None


class HistoryPart(Wire):
    """The text of a message from before."""

    type: Literal["input_text", "output_text", "text"]
    text: str


class HistoryMessage(Wire):
    """A message from before."""

    type: Literal["message"] = "message"
    role: Literal["developer", "system", "user", "assistant"]
    content: str | list[HistoryPart]

    @property
    def text(self) -> str:
        """What was said."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content)


class LiveConfig(Wire):
    """The `session` of `session.start`."""

    nullable: ClassVar[frozenset[str]] = frozenset({"delegation"})

    model: str
    audio: LiveAudio | None = None
    instructions: str | None = None
    input: Annotated[list[HistoryMessage], Field(max_length=128)] | None = None
    delegation: dict[str, Any] | None = None
    client: dict[str, Any] | None = None
    safety_identifier: str | None = None
    store: bool | None = None
    triggers: list[dict[str, Any]] | None = None


class SessionStart(LiveEvent):
    """Begins; the first event."""

    type: Literal["session.start"]
    session: LiveConfig


class InputAppend(LiveEvent):
    """More of the user's sound."""

    type: Literal["session.input_audio.append"]
    audio: str


class InputMute(LiveEvent):
    """From here on the server hears silence."""

    type: Literal["session.input_audio.mute"]


class InputUnmute(LiveEvent):
    """From here on the server hears again."""

    type: Literal["session.input_audio.unmute"]


class InstructionsAppend(LiveEvent):
    """More instructions."""

    type: Literal["session.instructions.append"]
    content: str
    delegation_id: str | None = None


class SessionClose(LiveEvent):
    """Ends."""

    type: Literal["session.close"]


_EVENTS: dict[str, type[LiveEvent]] = {
    "session.start": SessionStart,
    "session.input_audio.append": InputAppend,
    "session.input_audio.mute": InputMute,
    "session.input_audio.unmute": InputUnmute,
    "session.instructions.append": InstructionsAppend,
    "session.close": SessionClose,
}


def parse_live_event(text: str | None) -> LiveEvent:
    """Reads one frame.

    Raises:
        EventError: It is no event that is known here; names the event and the field at fault.
    """
    if text is None:
        message = "Events are JSON in text frames; binary frames mean nothing here."
        raise EventError(message, "invalid_event")
    try:
        data = from_json(text)
    except ValueError:
        raise EventError("The frame is not valid JSON.", "invalid_json") from None
    if not isinstance(data, dict):
        raise EventError("An event must be a JSON object.", "invalid_event")
    event_id = data.get("event_id") if isinstance(data.get("event_id"), str) else None
    kind = data.get("type")
    event = _EVENTS.get(kind) if isinstance(kind, str) else None
    if event is None:
        names = ", ".join(f"'{name}'" for name in _EVENTS)
        message = f"Invalid value: {str(kind)[:80]!r}. Supported values are: {names}."
        raise EventError(message, "invalid_value", "type", event_id=event_id)
    try:
        return event.model_validate(data)
    except ValidationError as failure:
        refusal = explain(failure, data)
        refusal.event_id = event_id
        raise refusal from None
