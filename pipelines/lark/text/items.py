# ruff: noqa: RUF001, SIM905 -- tables of characters and of words
"""From tokens to items: words with their readings, marks, ends of sentences.

Here markup is dropped, sentences end, and each word is read in the light of its neighbours. The
tokens ahead are only seen through `Lexer.peek`, and nothing is changed before all that a step needs
has been seen: a step that raises `NeedMore` can be repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipelines.lark.text.codes import ADDRESS, read_symbol
from pipelines.lark.text.lexer import Gap, Kind, Lexer, Token
from pipelines.lark.text.phrase import Word
from pipelines.lark.text.tables import STARTERS, SYMBOLS, WORDS
from pipelines.lark.text.words import read_abbreviation, read_word

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

_LEAD = frozenset("\"'“”([{<*_~`#|…—–-!.,;:?>]})")
_TRAIL = frozenset(".,;:!?…\"”“')]}>*_~`|—–-")
_STOPS = frozenset(".!?…")
_INNER = re.compile(
    r"—+|--+|\.{2,}|…+|\|+|(?<=[^\W\d])[,;!?]+(?=[^\W_])|(?<=\w)[,;:!?]+(?=[\"'“(\[])"
    r"|(?<=[a-z][a-z])\.(?=[A-Z][a-z])|(?<=[^\W\d]{2}):(?=[^\W\d]{2})|[\"“”]+|(?<=\w)[(\[](?=\w+\s)"
)
_LINK_TARGET = re.compile(r"\](?:\([^)]*\)?|\[[^\]]*\])")
_TABLE_RULE = re.compile(r"[|:\-+=]*-[|:\-+=]*")
_APOSTROPHES = re.compile(r"'(?:em|tis|twas|cause|bout|til|round|n|\d0s)\b", re.IGNORECASE)
_LONG_LINE = 55
_MAX_TITLE = 12


@dataclass(slots=True)
class _Line:
    """What the current line of the text is."""

    fresh: bool = True
    block: bool = False
    start: int = 0
    end: int = 0
    skipped: bool = False


@dataclass(slots=True)
class _State:
    before: str = ""
    stop: str = ""
    may_end: bool | None = True
    line: _Line = field(default_factory=_Line)
    fenced: bool = False
    title: int = 0


class _Around:
    """The neighbours of a word, seen on demand."""

    def __init__(self, before: str, lexer: Lexer | None) -> None:
        self.before = before
        self._lexer = lexer

    def after(self) -> str:
        if self._lexer is None:
            return ""
        token = self._lexer.peek(1)
        if token.kind is not Kind.TEXT or token.gap is Gap.BLOCK:
            return ""
        return token.text.lstrip("\"'“([*_`").rstrip(".,;:!?\"'”)]*_`")


class ItemReader:
    """Reads the tokens of one text, step by step."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._state = _State()

    def step(self) -> list[Item]:
        """Read one token; raises NeedMore if more text could change its reading."""
        token = self._lexer.peek(0)
        if token.kind is not Kind.TEXT:
            self._lexer.pop()
            self._state = _State(fenced=self._state.fenced)
            return [End(final=token.kind is Kind.END)]
        line, ended = self._line(token)
        items: list[Item] = [End()] if ended else []
        state = self._state
        before = "" if ended else state.before
        if self._is_markup(token, line, before):
            self._lexer.pop()
            state.line, state.before = line, before
            state.stop = "" if ended else state.stop
            return items
        target = _LINK_TARGET.search(token.text)
        title = state.title
        if target:
            unclosed = target.group().startswith("](") and not target.group().endswith(")")
            title = _MAX_TITLE if unclosed else 0
            token = token.without(*target.span())
        elif title:
            closing = token.text.find(")")
            title = title - 1 if closing < 0 else 0
            token = token.without(0, closing + 1 or len(token.text))
        words = _Segments(token, before, self._lexer, line).read() if token.text else None
        self._lexer.pop()
        state.title = title
        state.line = line
        line.fresh = False
        if words is None:
            return items
        state.before = words.before
        if words.spoken:
            state.stop, state.may_end = words.stop, words.may_end
        elif words.stop:
            state.stop, state.may_end = words.stop, True
        elif ended:
            state.stop = ""
        if token.full_stop and state.stop:
            state.may_end = True
            items += words.items
            state.stop, state.before = "", ""
            return [*items, End()]
        return items + words.items

    # -- lines and sentences ------------------------------------------------------------------

    def _line(self, token: Token) -> tuple[_Line, bool]:
        """Return the line the token is on and whether a sentence ends before the token."""
        old = self._state.line
        if token.gap < Gap.LINE:
            line = _Line(old.fresh, old.block, old.start, token.span(0, len(token.text))[1],
                         old.skipped)  # fmt: skip
            return line, self._sentence_ends(token)
        start, end = token.span(0, len(token.text))
        return _Line(start=start, end=end), self._line_ends(token, old)

    def _line_ends(self, token: Token, line: _Line) -> bool:
        if token.gap is Gap.BLOCK or line.block or self._state.fenced or self._state.stop:
            return True
        first = token.text[0]
        if first in "#|>`*+•-–" or _is_list_number(token.text):
            return True
        return not (first.islower() or line.end - line.start >= _LONG_LINE)

    def _sentence_ends(self, token: Token) -> bool:
        state = self._state
        if not state.stop or state.may_end is False:
            return False
        letters = token.text.lstrip("\"'“([*_`#-—–")
        if not letters or letters[0].islower() or (token.gap is Gap.NONE and state.stop == "."):
            return False
        if letters[0] in ".,;:!?…)]":
            return False
        if state.stop == "…":
            return letters[0].isupper() or not letters[0].isalnum()
        if state.may_end is None:
            return re.split(r"\W", letters)[0] in STARTERS
        return True

    # -- markup -------------------------------------------------------------------------------

    def _is_markup(self, token: Token, line: _Line, before: str) -> bool:
        """Tell whether the token is markup of lines, noting what it makes of the line."""
        state = self._state
        text = token.text
        if line.skipped:
            return True
        if not line.fresh:
            return False
        if text.startswith(("```", "~~~")):
            state.fenced = not state.fenced
            line.block = line.skipped = True
            return True
        if state.fenced:
            line.block = True
            return False
        if text.strip(">") == "":
            return True
        if text.strip("#") == "" and len(text) <= 6:
            line.block, line.fresh = True, False
            return True
        if text in ("-", "*", "+", "–", "|", "•"):
            line.block, line.fresh = True, text != "|"
            return True
        if line.block and text in ("[", "]", "[]", "[x]", "[X]"):
            return True
        if text[0] == "|":
            line.block = True
        if _is_list_number(text):
            line.block = True
        return _TABLE_RULE.fullmatch(text) is not None


def _is_list_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,3}[.)]", text) is not None


class _Segments:
    """The words and marks of one token."""

    def __init__(self, token: Token, before: str, lexer: Lexer, line: _Line) -> None:
        self.items: list[Item] = []
        self.before = before
        self.stop = ""
        self.may_end: bool | None = True
        self.spoken = False
        self._token = token
        self._lexer = lexer
        self._line = line

    def read(self) -> _Segments:
        text = self._token.text
        if text in WORDS and not text.isalpha():
            self._speak(0, len(text), WORDS[text])
            return self
        if not any(character.isalnum() or character in SYMBOLS for character in text):
            self._marks(text, opening=False)
            return self
        if self._line.fresh and _is_list_number(text) and self._same_line():
            self._word(0, len(text) - 1, last=False)
            self.items.append(Mark(",", PAUSE))
            return self
        start, end = 0, len(text)
        while start < end and text[start] in _LEAD and not self._keeps(start):
            start += 1
        while end > start and text[end - 1] in _TRAIL and not self._balances(start, end):
            end -= 1
        if start == end:
            self._symbols(text)
            return self
        self._marks(text[:start], opening=True)
        self._core(start, end, text[end:])
        return self

    def _same_line(self) -> bool:
        token = self._lexer.peek(1)
        return token.kind is Kind.TEXT and token.gap < Gap.LINE

    def _keeps(self, index: int) -> bool:
        """Tell whether the leading character belongs to the word."""
        text = self._token.text
        after = text[index + 1 : index + 2]
        if text[index] in "-.~–":
            return after.isdigit() and (index == 0 or text[index] != "–") or (
                text[index] == "." and text[index:].startswith(".NET")
            ) or (text[index] == "-" and after in tuple("$€£"))  # fmt: skip
        if text[index] == "#":
            return after.isalnum()
        if text[index] == "'":
            return _APOSTROPHES.match(text, index) is not None
        return False

    def _balances(self, start: int, end: int) -> bool:
        """Tell whether the last character closes a bracket inside the word: "foo()"."""
        core = self._token.text[start:end]
        opening = {")": "(", "]": "[", "}": "{", ">": "<"}.get(core[-1])
        return opening is not None and core.count(opening) >= core.count(core[-1])

    def _core(self, start: int, end: int, trail: str) -> None:
        text = self._token.text
        if ADDRESS.fullmatch(text, start, end):
            self._word(start, end, last=True, trail=trail)
            return
        position = start
        for match in _INNER.finditer(text, start, end):
            if match.start() > position:
                self._word(position, match.start(), last=False)
                self._marks(match.group(), opening=False)
                if match.group()[0] in ".!?" and len(match.group()) == 1:
                    self.items.append(End())
                    self.before = ""
            position = match.end()
        self._word(position, end, last=True, trail=trail)

    def _word(self, start: int, end: int, *, last: bool, trail: str = "") -> None:
        """Read one word, in parts if it is too long to be one."""
        text = self._token.text
        size = 24
        if end - start > 32 and not ADDRESS.fullmatch(text, start, end):
            if not text[start:end].isalpha():
                while end - start > size:
                    self._one(start, start + size, "", None)
                    start += size
        self._one(start, end, trail, self._lexer if last else None)

    def _one(self, start: int, end: int, trail: str, lexer: Lexer | None) -> None:
        word = self._token.text[start:end]
        around = _Around(self.before, lexer if trail.strip("*_`") in ("", ".") else None)
        abbreviation = None
        if trail.startswith("."):
            full = _Around(self.before, lexer) if len(trail.strip("*_`")) == 1 else around
            abbreviation = read_abbreviation(word, full)
            around = _Around(self.before, None)
        if abbreviation:
            reading, may_end = abbreviation
            self._speak(start, end + 1, reading)
            # The period belongs to the word; it is heard only if the sentence ends there too.
            self.before, self.stop, self.may_end = word, ".", may_end
            self._marks(trail[1:], opening=False)
            return
        self._speak(start, end, read_word(word, around))
        self._marks(trail, opening=False)

    def _symbols(self, text: str) -> None:
        """Read a token of symbols and punctuation only."""
        token = self._lexer.peek(1) if len(text) <= 2 else None
        after = token.text if token and token.kind is Kind.TEXT else ""
        reading = read_symbol(text, self.before, after)
        if reading:
            self._speak(0, len(text), reading)
        else:
            self._marks(text, opening=False)

    def _speak(self, start: int, end: int, reading: str) -> None:
        if not reading.strip(" ,"):
            return
        self.items.append(Spoken(*self._token.span(start, end), reading))
        self.before = self._token.text[start:end]
        self.stop = ""
        self.may_end = True
        self.spoken = True

    def _marks(self, text: str, *, opening: bool) -> None:
        """Add the marks of a run of punctuation: each kind of pause once, quotes as they open."""
        if ".." in text:
            text = re.sub(r"\.{2,}", "…", text)
        text = text.replace("--", "—")
        for index, character in enumerate(text):
            if character in ".!?…":
                if self.stop != character:
                    self.items.append(Mark(character, PAUSE))
                self.stop = character
                self.before = ""
            elif character in ",;:—|–":
                if not (opening and character in "|:,;"):
                    shown = {"|": ",", "–": "—"}.get(character, character)
                    self.items.append(Mark(shown, PAUSE))
                    self.before = ""
            elif character == "-" and text == "-":
                self.items.append(Mark("—", PAUSE))
            elif character in '"“”':
                opens = character == "“" or (character == '"' and opening)
                self.items.append(Mark("“" if opens else "”", OPEN if opens else CLOSE))
            elif character in "()":
                kind = OPEN if character == "(" else CLOSE
                self.items.append(Mark(character, kind))


__all__ = ["CLOSE", "OPEN", "PAUSE", "End", "Item", "ItemReader", "Mark", "Spoken", "Word"]
