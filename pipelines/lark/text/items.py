"""What a text consists of once it is read: words, marks, ends of sentences."""

from __future__ import annotations

from dataclasses import dataclass

OPEN, CLOSE, PAUSE = "open", "close", "pause"


@dataclass(frozen=True, slots=True)
class Spoken:
    """A written word and its reading, in the notation of `quantities`."""

    start: int
    end: int
    reading: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A phoneme-like punctuation mark: an opening or closing one, or a pause."""

    character: str
    kind: str


@dataclass(frozen=True, slots=True)
class End:
    """The end of a sentence, or of the whole text."""

    final: bool = False


Item = Spoken | Mark | End
