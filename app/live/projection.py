"""A session's events as a Live client sees them: sound and text on one timeline, no turns.

The sound that is sent has no gaps: where nothing is said, it is silence. So its length is the
session's time, and a word's place in it the word's time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.audio.wire_formats import TICKS_PER_SECOND, WireFormat
from app.audio.worker import to_base64
from app.identifiers import new_identifier
from app.live.schema import LiveConfig
from app.realtime.outbox import Frame
from app.realtime.output import SpokenText

Event = dict[str, Any]


def live_event(kind: str, client_event_id: str | None = None, **fields: Any) -> Event:
    """An event for a Live client."""
    event: Event = {"type": kind, "event_id": new_identifier("event"), **fields}
    return event if client_event_id is None else {**event, "client_event_id": client_event_id}


def error_of(error: dict[str, Any]) -> Event:
    """An `error`, which in this protocol names the client's event by another key."""
    client_event_id = error.get("event_id")
    kept = {key: error[key] for key in ("type", "code", "message", "param") if error.get(key)}
    if client_event_id is not None:
        kept["client_event_id"] = client_event_id
    return live_event("error", client_event_id, error=kept)


def _sound_event(delta: str) -> Event:
    return {"type": "session.output_audio.delta", "delta": delta}


@dataclass(slots=True)
class _Playing:
    """The answer that is being heard."""

    item: str
    ticks: int = 0
    waiting: list[SpokenText] = field(default_factory=list)


class Projection:
    """Turns a session's frames into a Live client's events.

    Attributes:
        config: What the client asked for.
        audio_format: The sound's format, both ways.
    """

    def __init__(
        self, config: LiveConfig, audio_format: WireFormat, clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds; the session's timeline begins now."""
        self.config = config
        self.audio_format = audio_format
        self._clock = clock
        self._began = clock()
        self._sent_ticks = 0
        self._turns: dict[str, list[int]] = {}
        self._playing: _Playing | None = None

    @property
    def seconds(self) -> float:
        """How long the session has lasted."""
        return self._clock() - self._began

    @property
    def sent_seconds(self) -> float:
        """How long the sound is that was sent."""
        return self._sent_ticks / TICKS_PER_SECOND

    @property
    def sound_ends(self) -> float:
        """When the sound that was sent is over for a client that plays it at once, on the clock."""
        return self._began + self.sent_seconds

    def silence(self, seconds: float) -> list[Event]:
        """Silence for a time in which nothing is said."""
        ticks = int(seconds * TICKS_PER_SECOND)
        size = self.audio_format.size(ticks)
        self._sent_ticks += self.audio_format.ticks(size)
        return [_sound_event(to_base64(self.audio_format.silence(size)))] if size else []

    def resource(self, session: Event) -> Event:
        """The session as this protocol shows it."""
        output = {"voice": session["audio"]["output"]["voice"]}
        audio_format = {**self.audio_format.as_wire(), "rate": self.audio_format.rate}
        return {
            "id": session["id"],
            "expires_at": session["expires_at"],
            "model": self.config.model,
            "status": "active",
            "instructions": session["instructions"],
            "audio": {"format": audio_format, "output": output},
        }

    def closed(self, session: Event, reason: str, client_event_id: str | None) -> Event:
        """The last event."""
        seconds = round(self.seconds)
        usage = {"seconds": seconds, "active_seconds": seconds, "paused_seconds": 0}
        resource = self.resource(session)
        return live_event(
            "session.closed", client_event_id, reason=reason, session=resource, usage=usage
        )

    def project(self, frame: Frame) -> list[Event]:
        """What a frame is for a Live client; most are nothing."""
        event = json.loads(frame.text)
        match event["type"]:
            case "response.output_audio.delta":
                return self._sound(frame, event["delta"])
            case "error":
                return [error_of(event["error"])]
            case "input_audio_buffer.speech_started":
                self._turns[event["item_id"]] = [event["audio_start_ms"], event["audio_start_ms"]]
            case "input_audio_buffer.speech_stopped":
                self._turns[event["item_id"]][1] = event["audio_end_ms"]
            case "conversation.item.input_audio_transcription.completed":
                return self._heard(event)
            case "conversation.item.input_audio_transcription.failed":
                self._turns.pop(event["item_id"], None)
            case "response.done" if event["response"]["status"] == "failed":
                details = event["response"]["status_details"]["error"]
                return [error_of(details)]
        return []

    def _heard(self, event: Event) -> list[Event]:
        start, end = self._turns.pop(event["item_id"], (0, 0))
        if not event["transcript"]:
            return []
        delta = event["transcript"] + " "
        return [
            live_event("session.input_transcript.delta", delta=delta, start_ms=start, end_ms=end)
        ]

    def _sound(self, frame: Frame, delta: str) -> list[Event]:
        assert frame.item is not None
        if self._playing is None or self._playing.item != frame.item:
            self._playing = _Playing(frame.item)
        playing = self._playing
        playing.ticks += frame.ticks
        self._sent_ticks += frame.ticks
        playing.waiting.extend(frame.spoken)
        return [_sound_event(delta), *self._spoken(playing)]

    def _spoken(self, playing: _Playing) -> list[Event]:
        """The words whose sound has begun."""
        until = playing.ticks / TICKS_PER_SECOND
        begins = self.sent_seconds - until
        events = []
        while playing.waiting and playing.waiting[0].start < until:
            word = playing.waiting.pop(0)
            events.append(
                live_event(
                    "session.output_transcript.delta",
                    delta=word.text,
                    start_ms=round(1000 * (begins + word.start)),
                    end_ms=round(1000 * (begins + word.end)),
                )
            )
        return events
