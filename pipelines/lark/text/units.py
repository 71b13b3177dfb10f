"""Words and marks in speaking order, each with its phonemes once they are certain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pipelines.lark.text.items import OPEN, PAUSE, End, Mark
from pipelines.lark.text.phonemizer import Phonemizer, Sentence
from pipelines.lark.text.sentences import ItemReader


@dataclass(slots=True)
class Unit:
    """One spoken word, a mark, or (with neither) the end of a sentence."""

    text: str = ""
    mark: str = ""
    kind: str = ""
    spelled: bool = False
    span: tuple[int, int] | None = None
    """Where the written word stands that this belongs to; marks between words have none."""
    sentence: Sentence | None = None
    first: int = 0
    count: int = 0
    final: bool = False


class Units:
    """The units ahead, made from items on demand.

    Whatever needs text that has not come raises `NeedMore` and can be asked again.
    """

    def __init__(self, items: ItemReader, phonemizer: Phonemizer) -> None:
        self._items = items
        self._phonemizer = phonemizer
        self._queue: deque[Unit] = deque()
        self._sentence = Sentence()

    def first(self) -> Unit | None:
        """Return the first unit; None if a step was taken that brought none."""
        if not self._queue:
            self._pull()
        return self._queue[0] if self._queue else None

    def pop(self) -> Unit:
        """Take the first unit away."""
        return self._queue.popleft()

    def word(self) -> list[tuple[Unit, list[int]]]:
        """Return the units of the first written word with their phoneme ids."""
        span = self._queue[0].span
        size = 0
        while size < len(self._queue) and self._queue[size].span == span:
            size += 1
        return [(self._queue[index], self._ids(index)) for index in range(size)]

    def _pull(self) -> None:
        """Append the units of one more token."""
        for item in self._items.step():
            if isinstance(item, End):
                self._sentence.closed = True
                self._sentence = Sentence()
                self._queue.append(Unit(final=item.final))
            elif isinstance(item, Mark):
                self._append_mark(item.character, item.kind, None)
            else:
                for word in item.reading.split():
                    if word == ",":
                        self._append_mark(word, PAUSE, (item.start, item.end))
                    else:
                        self._append_word(word, (item.start, item.end))

    def _append_mark(self, character: str, kind: str, span: tuple[int, int] | None) -> None:
        tokens = self._sentence.tokens
        if not tokens and kind != OPEN:
            return
        self._queue.append(Unit(mark=character, kind=kind, span=span))
        tokens.append(self._phonemizer.mark_token(character))

    def _append_word(self, word: str, span: tuple[int, int]) -> None:
        spelled = word[0] == "~"
        text = word[1:] if spelled else self._phonemizer.written(word)
        spelled = spelled or self._phonemizer.is_unpronounceable(text)
        pieces = (text,) if spelled else self._phonemizer.tokens(text)
        tokens = self._sentence.tokens
        unit = Unit(text=text, spelled=spelled, span=span, sentence=self._sentence,
                    first=len(tokens), count=len(pieces))  # fmt: skip
        self._queue.append(unit)
        tokens.extend(pieces)

    def _ids(self, index: int) -> list[int]:
        unit, phonemizer = self._queue[index], self._phonemizer
        if unit.kind:
            return phonemizer.ids(unit.mark)
        if unit.spelled:
            return phonemizer.ids(phonemizer.spelled(unit.text))
        sentence = unit.sentence
        assert sentence is not None
        dependence = phonemizer.dependence(unit.text)
        tags = None
        if dependence.tag:
            behind = unit.first + unit.count + 2
            while len(sentence.tokens) < behind and not sentence.closed:
                self._pull()
            places = range(unit.first, unit.first + unit.count)
            tags = [phonemizer.tag(sentence, place) for place in places]
        following = self._following(index) if dependence.sound else []
        return phonemizer.ids(phonemizer.read(unit.text, tags, following))

    def _following(self, index: int) -> list[str]:
        """List what follows a word up to the first pause or word.

        The article "a" does not count: its vowel is none to the G2P's rules, which look past it.
        """
        following = []
        while True:
            index += 1
            while index >= len(self._queue):
                self._pull()
            unit = self._queue[index]
            if unit.kind:
                following.append(unit.mark)
                if unit.kind == PAUSE:
                    return following
            else:
                if unit.text:
                    following.append(unit.text)
                if unit.text not in ("a", "A"):
                    return following
