"""What the session's state machine is told, and what it answers with.

Ticks are 48 000ths of a second of the user's sound, counted from the session's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The final `status` of a response."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


class Reason(StrEnum):
    """The `reason` beside a final status."""

    TURN_DETECTED = "turn_detected"
    CLIENT_CANCELLED = "client_cancelled"
    MAX_OUTPUT_TOKENS = "max_output_tokens"


class Origin(StrEnum):
    """Who asked for a response."""

    CLIENT = "client"
    TURN = "turn"


@dataclass(frozen=True, slots=True)
class AudioAppended:
    """The client sent sound of so many ticks."""

    ticks: int


@dataclass(frozen=True, slots=True)
class CommitAsked:
    """The client ends a turn; `item_id` is a fresh name for it."""

    item_id: str
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClearAsked:
    """The client forgets what it appended."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The ear heard a turn begin, in the sound since the hearing numbered `hearing` began."""

    hearing: int
    item_id: str
    start: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The ear heard the turn end; `response_id` is a fresh name for its answer."""

    hearing: int
    end: int
    response_id: str


@dataclass(frozen=True, slots=True)
class SoundDropped:
    """The ear found nothing before a point and forgot it."""

    hearing: int
    before: int


@dataclass(frozen=True, slots=True)
class TextPending:
    """What was said in an item is being found out."""

    item_id: str


@dataclass(frozen=True, slots=True)
class TextSettled:
    """An item can be answered: its words or its sound are known, or never will be."""

    item_id: str


@dataclass(frozen=True, slots=True)
class NothingSaid:
    """A response answers a turn without words; `begun` says whether anything of it was sent."""

    response_id: str
    begun: bool


@dataclass(frozen=True, slots=True)
class ResponseAsked:
    """A response is wanted, in the conversation or beside it."""

    response_id: str
    in_conversation: bool = True
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """The client stops a response, the conversation's own if it names none."""

    response_id: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """The engine has made all of a response, or failed to."""

    response_id: str
    outcome: Outcome
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class WorkJoined:
    """Nothing of a response is left in the engine or in a task."""

    response_id: str


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """How turns are taken from now on."""

    rules: Rules


@dataclass(frozen=True, slots=True)
class SilenceElapsed:
    """Nobody spoke for the idle time-out; with fresh names for an empty turn and its answer."""

    item_id: str
    response_id: str


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session ends."""


Event = (
    AudioAppended
    | CommitAsked
    | ClearAsked
    | SpeechStarted
    | SpeechStopped
    | SoundDropped
    | TextPending
    | TextSettled
    | NothingSaid
    | ResponseAsked
    | CancelAsked
    | WorkEnded
    | WorkJoined
    | RulesChanged
    | SilenceElapsed
    | SessionClosed
)


@dataclass(frozen=True, slots=True)
class Rules:
    """How turns are taken.

    Attributes:
        detection: Whether the ear ends turns; else the client does.
        create_response: Whether a turn that ends is answered.
        interrupt_response: Whether a turn that begins stops an answer.
    """

    detection: bool = True
    create_response: bool = True
    interrupt_response: bool = True


@dataclass(frozen=True, slots=True)
class TellSpeechStarted:
    """Send `speech_started`."""

    item_id: str
    start: int


@dataclass(frozen=True, slots=True)
class TellSpeechStopped:
    """Send `speech_stopped`."""

    item_id: str
    end: int


@dataclass(frozen=True, slots=True)
class TellCleared:
    """Send `cleared`."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Make an item of a stretch of sound."""

    item_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RestartHearing:
    """The ear begins anew at a point; what it still says of the time before is not listened to."""

    hearing: int
    start: int


@dataclass(frozen=True, slots=True)
class OpenResponse:
    """Send `response.created`."""

    response_id: str
    in_conversation: bool
    origin: Origin


@dataclass(frozen=True, slots=True)
class StartWork:
    """Let the engine make the response."""

    response_id: str


@dataclass(frozen=True, slots=True)
class StopWork:
    """Abort the response in the engine; `WorkJoined` acknowledges it."""

    response_id: str


@dataclass(frozen=True, slots=True)
class CloseResponse:
    """Send what is left of a response's events and its `response.done`."""

    response_id: str
    outcome: Outcome
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class TellTimeout:
    """Send `timeout_triggered` and commit an empty turn."""

    item_id: str
    at: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send `error`."""

    message: str
    code: str
    event_id: str | None
    param: str | None = None


Effect = (
    TellSpeechStarted
    | TellSpeechStopped
    | TellCleared
    | Commit
    | RestartHearing
    | OpenResponse
    | StartWork
    | StopWork
    | CloseResponse
    | TellTimeout
    | Refuse
)
