"""Knows when the sound of a flushed text has been sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from engine import WordTiming


@dataclass(frozen=True, slots=True)
class Flush:
    """One flush that waits for its sound.

    Attributes:
        client_event_id: The identifier of the event that asked for it.
        length: How much text came before it, in characters.
        last_spoken: Position of the last letter or digit before it; -1 if there is none.
    """

    client_event_id: str | None
    length: int
    last_spoken: int


class FlushTracker:
    """Matches flushes with the words whose sound was sent.

    A flush is over when the word that holds the last letter or digit before it was heard to its
    end, or when a word behind it begins, whichever shows first.
    """

    def __init__(self) -> None:
        """Starts with no text and no flush."""
        self._length = 0
        self._last_spoken = -1
        self._waiting: deque[Flush] = deque()
        self._begun: deque[WordTiming] = deque()
        self._heard_characters = 0
        self._begun_characters = -1

    @property
    def waiting(self) -> int:
        """How many flushes are not over yet."""
        return len(self._waiting)

    def add_text(self, text: str) -> None:
        """Notes text that was appended."""
        for position in range(len(text) - 1, -1, -1):
            if text[position].isalnum():
                self._last_spoken = self._length + position
                break
        self._length += len(text)

    def add_flush(self, client_event_id: str | None) -> None:
        """Notes a flush behind all text so far."""
        self._waiting.append(Flush(client_event_id, self._length, self._last_spoken))

    def advance(self, words: Iterable[WordTiming], seconds: float) -> list[Flush]:
        """Notes sound that was sent.

        Args:
            words: Words that begin in it.
            seconds: Duration of all sound that was sent so far.

        Returns:
            The flushes that are over now, in order.
        """
        for word in words:
            self._begun.append(word)
            self._begun_characters = max(self._begun_characters, word.start_character)
        while self._begun and self._begun[0].end <= seconds:
            heard = self._begun.popleft()
            self._heard_characters = max(self._heard_characters, heard.end_character)
        over = []
        while self._waiting and self._is_over(self._waiting[0]):
            over.append(self._waiting.popleft())
        return over

    def finish(self) -> list[Flush]:
        """All flushes that still wait; for when everything was sent."""
        rest = list(self._waiting)
        self._waiting.clear()
        return rest

    def _is_over(self, flush: Flush) -> bool:
        heard = self._heard_characters > flush.last_spoken
        return heard or self._begun_characters >= flush.length
