"""What the ear tells a session, and what a session wants of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.audio.pcm import FloatSamples


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known beforehand about what will be said.

    Attributes:
        language: What is spoken, as a two-letter code; None finds it out.
        prompt: Names and words that are likely to come, or the text before; "" for nothing.
    """

    language: str | None = None
    prompt: str = ""


NO_HINTS = Hints()


def base_language(tag: str) -> str:
    """The language of a tag such as `en-US`, as its code."""
    return tag.lower().replace("_", "-").partition("-")[0]


def prompt_of(prompt: str | None, keywords: Sequence[str]) -> str:
    """A client's prompt and keywords as one text before what is said."""
    return " ".join(part for part in [prompt or "", ", ".join(keywords)] if part)


@dataclass(frozen=True, slots=True)
class HearingRules:
    """How one session's turns are found.

    Attributes:
        kind: By a silence, by what sounds finished, or not at all.
        threshold: Probability from which sound is speech, 0 to 1.
        prefix_padding_ms: How much before the first speech belongs to a turn.
        silence_duration_ms: The silence that ends a turn.
        eagerness: How soon something may count as finished.
        hints: What is known beforehand about the words.
    """

    kind: Literal["silence", "semantic", "none"] = "silence"
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    hints: Hints = NO_HINTS


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """Somebody began to speak.

    Attributes:
        hearing: Since which restart.
        start: Where the turn begins, in ticks.
        arrived: When the sound came that makes it a turn, on `time.monotonic`.
    """

    hearing: int
    start: int
    arrived: float


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
class SaidSoFar:
    """Another stretch of a turn, or of sound that the client will divide, is complete.

    Attributes:
        hearing: Since which restart.
        samples: All of it so far, 16 kHz.
    """

    hearing: int
    samples: FloatSamples


@dataclass(frozen=True, slots=True)
class Guessed:
    """What the turn would say if the pause that is going on were its end."""

    text: str


@dataclass(frozen=True, slots=True)
class Heard:
    """The sound of an item, 16 kHz; its words are told later."""

    item_id: str
    samples: FloatSamples


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


EarFinding = (
    TurnBegan | TurnEnded | NothingHeard | SaidSoFar | Guessed | Heard | Recognized | NotRecognized
)
