"""The reading of a text that arrives in pieces, as a stream of phrases.

What comes out is a function of the text alone: the pieces it arrived in decide only how early a
phrase comes and where it is cut, not a single phoneme of it. A flush is the one exception.
"""

from __future__ import annotations

from pipelines.lark.text.items import OPEN, PAUSE
from pipelines.lark.text.lexer import Lexer, NeedMore
from pipelines.lark.text.phonemizer import Phonemizer
from pipelines.lark.text.phrase import Phrase, Word
from pipelines.lark.text.sentences import ItemReader
from pipelines.lark.text.units import Unit, Units

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
        self._units = Units(ItemReader(self._lexer), phonemizer)
        self._source = _Source()
        self._spoken = 0
        self._paused = False
        self._opening = ""
        self._brackets = 0
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

        One call reads a clause at most. Where much text in a row is silent a phrase may be empty,
        so that no call takes long. After the last phrase of a closed text it returns None and
        `finished` is true.
        """
        builder = _Builder()
        for _ in range(MAX_STEPS):
            if self.finished:
                break
            try:
                unit = self._units.first()
                if unit is None:
                    continue
                if unit.span is not None:
                    self._speak(builder, unit.span)
                elif unit.kind:
                    self._mark(builder, self._units.pop())
                else:
                    self._end(builder, self._units.pop())
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

    # -- from units to phonemes ---------------------------------------------------------------

    def _speak(self, builder: _Builder, span: tuple[int, int]) -> None:
        """Move the first written word into the phrase, all of it or, for want of text, nothing."""
        word = self._units.word()
        length = sum(len(ids) + 1 for _, ids in word)
        if self._spoken and self._spoken + length > MAX_SENTENCE:
            self._close(builder)
            return
        self._open(builder)
        place = len(builder.words)
        builder.words.append(Word(self._source.slice(*span), *span))
        for unit, ids in word:
            self._units.pop()
            if unit.kind:
                self._add(builder, ids)
            else:
                if not self._glued:
                    self._add(builder, self._space)
                self._add(builder, ids, place)
            self._glued = False
        self._paused = False

    def _mark(self, builder: _Builder, unit: Unit) -> None:
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
        elif unit.mark != ")" or self._brackets:
            self._brackets = 0
            self._add(builder, self._phonemizer.ids(unit.mark))

    def _open(self, builder: _Builder) -> None:
        """Begin the sentence if need be, and add the marks that open the next word."""
        if not self._spoken:
            builder.add([PAD])
            self._glued = True
        opening = self._phonemizer.ids(self._opening)
        self._brackets += self._opening.count("(")
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
        self._brackets = 0

    def _end(self, builder: _Builder, unit: Unit) -> None:
        self.finished = unit.final
        self._opening = ""
        if self._spoken:
            if not self._paused:
                builder.add(self._phonemizer.ids("."))
            self._close(builder)

    def _at_end(self) -> bool:
        """Tell whether a closing mark or the end of the sentence comes next, if that is known."""
        try:
            unit = self._units.first()
        except NeedMore:
            return False
        return unit is not None and not unit.text and unit.kind != OPEN

    def _skip_ends(self, builder: _Builder) -> None:
        """After a sentence take further ends along, so that the end of the text is seen early."""
        while builder.ends_sentence and not self.finished and self._at_end():
            unit = self._units.first()
            if unit is None or unit.kind:
                return
            self._end(builder, self._units.pop())


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
