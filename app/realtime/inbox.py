"""What a session's actor is told, by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from app.ear.findings import EarFinding
from app.realtime.client_events import ClientEvent
from app.realtime.failure import EventError
from app.realtime.outbox import Closing, Outbox
from app.realtime.pictures import Pictures
from engine import StageError, ToolCallPayload, UsagePayload, WordTiming


@dataclass(frozen=True, slots=True)
class ClientSaid:
    """An event of the client, with the sounds and pictures it carries, and whose socket's it is."""

    outbox: Outbox
    event: ClientEvent
    sounds: tuple[bytes, ...] = ()
    pictures: Pictures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClientErred:
    """A frame of the client that is no event."""

    outbox: Outbox
    refusal: EventError


@dataclass(frozen=True, slots=True)
class EarFound:
    """The ear found something."""

    finding: EarFinding


@dataclass(frozen=True, slots=True)
class SoundMade:
    """An answer's sound in the client's format; as many bytes are reserved in the outbox."""

    response_id: str
    data: bytes
    words: tuple[WordTiming, ...]
    outbox: Outbox


@dataclass(frozen=True, slots=True)
class TextMade:
    """An answer's words."""

    response_id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallMade:
    """An answer's call of a function."""

    response_id: str
    call: ToolCallPayload


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The engine has made all of an answer, or says why it has not."""

    response_id: str
    usage: UsagePayload | None
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """Nothing of a response is left in the engine; `failure` is a fault that nobody foresaw."""

    response_id: str
    failure: BaseException | None = None


@dataclass(frozen=True, slots=True)
class SoundSent:
    """Sound of an answer was handed to the socket."""

    item_id: str
    ticks: int


class Timer(Enum):
    """What time ran out."""

    IDLE = auto()
    EXPIRED = auto()
    RESUME = auto()


@dataclass(frozen=True, slots=True)
class TimeUp:
    """A time ran out; `number` says which setting of the timer that was."""

    timer: Timer
    number: int = 0


@dataclass(frozen=True, slots=True)
class SocketOpened:
    """A socket serves the session from now on."""

    outbox: Outbox
    resumed: bool = False
    after_event: str | None = None
    played: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class SocketLost:
    """A socket is gone.

    Attributes:
        outbox: What waited for it.
        left: Whether the client closed it in order and will not come back.
        slow: Whether it was cut off, since the client read too slowly.
    """

    outbox: Outbox
    left: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class CloseAsked:
    """The session is to end."""

    closing: Closing


Told = (
    ClientSaid
    | ClientErred
    | EarFound
    | SoundMade
    | TextMade
    | CallMade
    | WorkDone
    | WorkLeft
    | SoundSent
    | TimeUp
    | SocketOpened
    | SocketLost
    | CloseAsked
)
