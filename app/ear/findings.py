"""What the ear tells a session, and what a session wants of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HearingRules:
    """How one session's turns are found.

    Attributes:
        kind: By a silence, by what sounds finished, or not at all.
        threshold: Probability from which sound is speech, 0 to 1.
        prefix_padding_ms: How much before the first speech belongs to a turn.
        silence_duration_ms: The silence that ends a turn.
        eagerness: How soon something may count as finished.
        language: What is spoken, as a two-letter code; None finds it out.
    """

    kind: Literal["silence", "semantic", "none"] = "silence"
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    language: str | None = None


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """Somebody began to speak; `start` is in ticks, `hearing` says since which restart."""

    hearing: int
    start: int


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """They have finished; `end` is in ticks."""

    hearing: int
    end: int


@dataclass(frozen=True, slots=True)
class NothingHeard:
    """The sound before a tick was dropped, since nobody spoke."""

    hearing: int
    before: int


@dataclass(frozen=True, slots=True)
class Recognized:
    """What was said in an item; `seconds` is how long its sound lasts."""

    item_id: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotRecognized:
    """What was said in an item cannot be found out."""

    item_id: str
    message: str


EarFinding = TurnBegan | TurnEnded | NothingHeard | Recognized | NotRecognized
