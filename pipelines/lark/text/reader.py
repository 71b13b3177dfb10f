"""The reading of a text that arrives in pieces, as a stream of phrases.

What comes out is a function of the text alone: the pieces it arrived in decide only how early a
phrase comes and where it is cut, not a single phoneme of it. A flush is the one exception.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pipelines.lark.text.items import OPEN, PAUSE, End, Mark
from pipelines.lark.text.lexer import Lexer, NeedMore
from pipelines.lark.text.phonemizer import Phonemizer, Sentence
from pipelines.lark.text.phrase import Phrase, Word
from pipelines.lark.text.sentences import ItemReader

PAD = 0
MAX_SENTENCE = 400
"""A sentence of more phonemes is closed and a new one opened."""
LONG_SENTENCE = 300
"""From here on a sentence is closed at the next pause."""
MAX_PHRASE = 120
"""A phrase without a pause is cut at the next word after this many phonemes."""
MAX_STEPS = 512
"""A call to `read` looks at this many words and marks at most."""
_ENDS = frozenset(".!?…")


@dataclass(slots=True)
class _Unit:
    """A word of a reading, a mark or the end of a sentence, waiting to be certain."""

    text: str = ""
    mark: str = ""
    kind: str = ""
    spelled: bool = False
    span: tuple[int, int] | None = None
    sentence: Sentence | None = None
    first: int = 0
    count: int = 0
    final: bool = False


class _Builder:
    """The phrase being made."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.word_of: list[int] = []
        self.words: list[Word] = []
        self.ends_sentence = False

    def add(self, ids: list[int], word: int = -1) -> None:
        self.ids += ids
        self.word_of += [word] * len(ids)

    def phrase(self) -> Phrase:
        return Phrase(tuple(self.ids), tuple(self.word_of), tuple(self.words), self.ends_sentence)


class SpeechReader:
    """Reads one text aloud, in phonemes.

    Push text as it comes, and read until None. It does no I/O and starts no threads; one thread
    uses it at a time. The phonemizer is shared.
    """

    def __init__(self, phonemizer: Phonemizer) -> None:
        self.finished = False
        self._phonemizer = phonemizer
        self._lexer = Lexer()
        self._items = ItemReader(self._lexer)
        self._units: deque[_Unit] = deque()
        self._tagging = Sentence()
        self._source = _Source()
        self._spoken = 0
        self._paused = False
        self._opening = ""
        self._glued = True
        self._space = phonemizer.ids(" ")

    @property
    def left_out(self) -> list[str]:
        """The distinct characters met so far that could not be spoken."""
        return list(self._lexer.left_out)

    def push(self, text: str) -> None:
        """Add text; only buffers it."""
        if text:
            self._lexer.push(text)
            self._source.push(text)

    def flush(self) -> None:
        """Let everything pushed so far be spoken to its end, though more may come."""
        self._lexer.flush()

    def close(self) -> None:
        """Declare the text complete."""
        self._lexer.close()

    def read(self) -> Phrase | None:
        """Return the next phrase whose reading is certain, None if more text is needed first.

        One call reads a clause at most. Where much text in a row is silent a phrase may be empty, so
        that no call takes long. After the last phrase of a closed text it returns None and
        `finished` is true.
        """
        builder = _Builder()
        for _ in range(MAX_STEPS):
            if self.finished:
                break
            try:
                if not self._units:
                    self._pull()
                    continue
                unit = self._units[0]
                if unit.span is not None:
                    self._speak(builder)
                elif unit.kind:
                    self._units.popleft()
                    self._mark(builder, unit)
                else:
                    self._end(builder, unit)
            except NeedMore:
                self._skip_ends(builder)
                return builder.phrase() if builder.ids else None
            if builder.ends_sentence:
                break
            long = self._paused or len(builder.ids) > MAX_PHRASE
            if builder.ids and long and not self._at_end():
                break
        self._skip_ends(builder)
        return None if self.finished and not builder.ids else builder.phrase()

    # -- from items to units ------------------------------------------------------------------

    def _peek(self, index: int) -> _Unit:
        while index >= len(self._units):
            self._pull()
        return self._units[index]

    def _pull(self) -> None:
        """Append at least the units of one token; raises NeedMore."""
        for item in self._items.step():
            if isinstance(item, End):
                self._tagging.closed = True
                self._tagging = Sentence()
                self._units.append(_Unit(final=item.final))
            elif isinstance(item, Mark):
                self._append_mark(item.character, item.kind, None)
            else:
                for word in item.reading.split():
                    if word == ",":
                        self._append_mark(word, PAUSE, (item.start, item.end))
                    else:
                        self._append_word(word, (item.start, item.end))

    def _append_mark(self, character: str, kind: str, span: tuple[int, int] | None) -> None:
        tokens = self._tagging.tokens
        if not tokens and kind != OPEN:
            return
        self._units.append(
            _Unit(mark=character, kind=kind, span=span, sentence=self._tagging, first=len(tokens))
        )
        tokens.append(self._phonemizer.mark_token(character))

    def _append_word(self, word: str, span: tuple[int, int]) -> None:
        spelled = word[0] == "~"
        text = word[1:] if spelled else self._phonemizer.written(word)
        spelled = spelled or self._phonemizer.is_unpronounceable(text)
        pieces = (text,) if spelled else self._phonemizer.tokens(text)
        tokens = self._tagging.tokens
        unit = _Unit(text=text, spelled=spelled, span=span, sentence=self._tagging,
                     first=len(tokens), count=len(pieces))  # fmt: skip
        self._units.append(unit)
        tokens.extend(pieces)

    # -- from units to phonemes ---------------------------------------------------------------

    def _speak(self, builder: _Builder) -> None:
        """Move the first written word into the phrase, all of it or, for want of text, nothing."""
        span = self._units[0].span
        assert span is not None
        size = 0
        while size < len(self._units) and self._units[size].span == span:
            size += 1
        readings = [self._reading(index) for index in range(size)]
        length = sum(len(ids) + 1 for ids in readings)
        if self._spoken and self._spoken + length > MAX_SENTENCE:
            self._close(builder)
            return
        for _ in range(size):
            self._units.popleft()
        self._open(builder)
        place = len(builder.words)
        builder.words.append(Word(self._source.slice(*span), *span))
        for ids in readings:
            if len(ids) == 1 and ids[0] < self._space[0]:
                self._add(builder, ids)
                self._glued = False
                continue
            if not self._glued:
                self._add(builder, self._space)
            self._add(builder, ids, place)
            self._glued = False
        self._paused = False

    def _reading(self, index: int) -> list[int]:
        """Return the phoneme ids of a word or of a pause inside one; raises NeedMore."""
        unit = self._units[index]
        sentence = unit.sentence
        assert sentence is not None
        if unit.kind:
            return self._phonemizer.ids(unit.mark)
        if unit.spelled:
            return self._phonemizer.ids(self._phonemizer.spelled(unit.text))
        dependence = self._phonemizer.dependence(unit.text)
        tags = None
        if dependence.tag:
            behind = unit.first + unit.count + 2
            while len(sentence.tokens) < behind and not sentence.closed:
                self._pull()
            places = range(unit.first, unit.first + unit.count)
            tags = [self._phonemizer.tag(sentence, place) for place in places]
        following = self._following(index) if dependence.sound else []
        return self._phonemizer.ids(self._phonemizer.read(unit.text, tags, following))

    def _following(self, index: int) -> list[str]:
        """List what follows a word up to the first pause or word.

        The article "a" does not count: its vowel is none to the G2P's rules, which look past it.
        """
        following = []
        while True:
            index += 1
            unit = self._peek(index)
            if unit.kind:
                following.append(unit.mark)
                if unit.kind == PAUSE:
                    return following
            else:
                if unit.text:
                    following.append(unit.text)
                if unit.text not in ("a", "A"):
                    return following

    def _mark(self, builder: _Builder, unit: _Unit) -> None:
        if unit.kind == OPEN:
            self._opening = (self._opening + unit.mark)[-2:]
        elif not self._spoken:
            return
        elif unit.kind == PAUSE:
            if self._paused:
                return
            if unit.mark == "—":
                self._add(builder, self._space)
            self._add(builder, self._phonemizer.ids(unit.mark))
            self._paused = True
            if self._spoken > LONG_SENTENCE and unit.mark not in _ENDS:
                self._close(builder)
        else:
            self._add(builder, self._phonemizer.ids(unit.mark))

    def _open(self, builder: _Builder) -> None:
        """Begin the sentence if need be, and add the marks that open the next word."""
        if not self._spoken:
            builder.add([PAD])
            self._glued = True
        opening = self._phonemizer.ids(self._opening)
        self._opening = ""
        if opening:
            if not self._glued:
                self._add(builder, self._space)
            self._add(builder, opening)
            self._glued = True

    def _add(self, builder: _Builder, ids: list[int], word: int = -1) -> None:
        builder.add(ids, word)
        self._spoken += len(ids)

    def _close(self, builder: _Builder) -> None:
        builder.add([PAD])
        builder.ends_sentence = True
        self._spoken = 0
        self._paused = False
        self._opening = ""

    def _end(self, builder: _Builder, unit: _Unit) -> None:
        self._units.popleft()
        self.finished = unit.final
        self._opening = ""
        if self._spoken:
            if not self._paused:
                builder.add(self._phonemizer.ids("."))
            self._close(builder)

    def _at_end(self) -> bool:
        """Tell whether a closing mark or the end of the sentence comes next, if that is known."""
        try:
            if not self._units:
                self._pull()
        except NeedMore:
            return False
        unit = self._units[0] if self._units else None
        return unit is not None and not unit.text and unit.kind != OPEN

    def _skip_ends(self, builder: _Builder) -> None:
        """After a sentence take further ends along, so that the end of the text is seen early."""
        while builder.ends_sentence and not self.finished and self._at_end():
            if self._peek(0).kind:
                return
            self._end(builder, self._peek(0))


class _Source:
    """The input, as long as words may still be cut from it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._text = ""
        self._base = 0

    def push(self, text: str) -> None:
        self._pieces.append(text)

    def slice(self, start: int, end: int) -> str:
        """Return input[start:end]; what lies before is then forgotten now and then."""
        if self._pieces:
            self._text += "".join(self._pieces)
            self._pieces.clear()
        if start - self._base > 8192:
            self._text = self._text[start - self._base :]
            self._base = start
        return self._text[start - self._base : end - self._base]
