"""What is true of a session, as its state machine sees it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from app.realtime.machine_events import Effect, Rules


class Phase(Enum):
    """How far the conversation's response has come."""

    WAITING = auto()
    """Created; the engine has not begun, since words are still being recognized or the response
    before has not left it."""
    RUNNING = auto()
    """The engine makes it."""


@dataclass(frozen=True, slots=True)
class ActiveResponse:
    """The one response that the conversation may have at a time."""

    response_id: str
    phase: Phase = Phase.WAITING


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """The user speaks: `speech_started` was sent for this item and `speech_stopped` was not."""

    item_id: str
    start: int


@dataclass(frozen=True, slots=True)
class State:
    """What is true of a session.

    Attributes:
        rules: How turns are taken.
        turn: The user's turn, while the ear hears one.
        active: The conversation's response.
        beside: Responses outside of the conversation that are being made.
        draining: The conversation's responses whose end was sent while the engine was still at
            work on them.
        unheard: Items that cannot be answered yet, since their words (where the Thinker hears:
            their sound) are not known.
        owed: The answer to a turn that ended while another response was being made.
        appended: All sound that ever came, in ticks.
        taken: How much of it belongs to items or was dropped.
        hearing: Counts the ear's beginnings.
        closed: Whether the session has ended.
    """

    rules: Rules = field(default_factory=Rules)
    turn: LiveTurn | None = None
    active: ActiveResponse | None = None
    beside: frozenset[str] = frozenset()
    draining: frozenset[str] = frozenset()
    unheard: frozenset[str] = frozenset()
    owed: str | None = None
    appended: int = 0
    taken: int = 0
    hearing: int = 0
    closed: bool = False
    # Effects of the step that is being made; empty between steps.
    _effects: tuple[Effect, ...] = field(default=(), repr=False)

    def but(self, *effects: Effect, **changes: object) -> State:
        """A changed state that also has something to be done."""
        return replace(self, **changes, _effects=(*self._effects, *effects))  # type: ignore[arg-type]
