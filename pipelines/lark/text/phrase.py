"""What the reading of a text consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One written word of the input, verbatim."""

    text: str
    """Exactly the slice input[start:end]."""
    start: int
    """Offset in characters from the beginning of the whole input."""
    end: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """An uninterrupted run of phonemes, in speaking order."""

    ids: tuple[int, ...]
    """Phoneme ids of the vocabulary; 0 is the silence at both ends of a sentence."""
    word_of: tuple[int, ...]
    """For each phoneme the index of its word, or -1 for pads, spaces and punctuation."""
    words: tuple[Word, ...]
    ends_sentence: bool
    """Whether ids ends with the closing pad; the next phrase then begins with one."""
