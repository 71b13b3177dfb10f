# ruff: noqa: RUF001 -- quotes and dashes
"""The words and marks of one token."""

from __future__ import annotations

import re

from pipelines.lark.text.codes import ADDRESS, read_symbol
from pipelines.lark.text.formulas import comparison
from pipelines.lark.text.items import CLOSE, OPEN, PAUSE, End, Item, Mark, Spoken
from pipelines.lark.text.lexer import Gap, Kind, Lexer, Token
from pipelines.lark.text.numbers import spelled
from pipelines.lark.text.quantities import is_phone_part, read_unit
from pipelines.lark.text.tables import CURRENCIES, SYMBOLS, WORDS
from pipelines.lark.text.words import Ending, read_abbreviation, read_word

_LEAD = frozenset("\"'“”([{<*_~`#|…—–-!.,;:?>]})")
_TRAIL = frozenset(".,;:!?…\"”“')]}>*_~`|—–-")
_INNER = re.compile(
    r"—+|--+|\.{2,}|…+|\|+|(?<=[^\W\d])[,;!?]+(?=[^\W_])|(?<=\w)[,;:!?]+(?=[\"'“(\[])"
    r"|(?<=[a-z][a-z])\.(?=[A-Z][a-z])|(?<=[^\W\d]{2}):(?=[^\W\d]{2})|[\"“”]+"
)
_EMOTICON = re.compile(r"[:;=]['-]?[()\[\]/\\|*]+|\^_*\^|-_+-")
_OPERATORS = frozenset("-–*")
_AREA_CODE = re.compile(r"\(\d{3}\)|\(0\d{2,4}\)")
_APOSTROPHES = re.compile(r"'(?:em|tis|twas|cause|bout|til|round|n|\d0s)\b", re.IGNORECASE)
_MAX_SYMBOLS = 8
_MAX_IN_ADDRESS = 16
_LONG_WORD = 32
_PART = 24
"""A token longer than a word can be is read as several words of this length."""


def is_list_number(text: str) -> bool:
    """Tell whether a token at the beginning of a line numbers an item of a list."""
    return re.fullmatch(r"\d{1,3}[.)]", text) is not None


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


class Segments:
    """The words and marks of one token.

    Attributes:
        items: What the token consists of.
        before: The last word, as context of the next token.
        stop: The mark that may end a sentence after the token; "" if there is none.
        ending: What must follow for it to end there.
        spoken: Whether there is a word among the items.
    """

    def __init__(self, token: Token, before: str, lexer: Lexer, fresh: bool) -> None:
        self.items: list[Item] = []
        self.before = before
        self.stop = ""
        self.ending: Ending = "any"
        self.spoken = False
        self._token = token
        self._lexer = lexer
        self._fresh = fresh

    def read(self) -> Segments:
        """Read the token; raises NeedMore if what follows matters and has not arrived."""
        text = self._token.text
        if text in WORDS and not text.isalpha():
            self._speak(0, len(text), WORDS[text])
            return self
        if _EMOTICON.fullmatch(text):
            return self
        if not any(character.isalnum() for character in text):
            self._symbols(text)
            return self
        if _AREA_CODE.fullmatch(text) and self._telephone(text[1:-1]):
            self._speak(1, len(text) - 1, f"{spelled(text[1:-1])} ,")
            self.before = f"+{text[1:-1]}"
            return self
        if self._fresh and is_list_number(text) and self._same_line():
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

    def _telephone(self, code: str) -> bool:
        rest = r"\d{3,8}\b" if code[0] == "0" else r"\d{3}[-.]?\d{4}\b"
        return re.match(rest, self._lexer.peek(1).text) is not None

    def _same_line(self) -> bool:
        token = self._lexer.peek(1)
        return token.kind is Kind.TEXT and token.gap < Gap.LINE

    def _keeps(self, index: int) -> bool:
        """Tell whether the leading character belongs to the word."""
        text = self._token.text
        after = text[index + 1 : index + 2]
        if text[index] in "-.~–":
            return (after.isdigit() and (index == 0 or text[index] != "–")) or (
                text[index] == "." and text[index:].startswith(".NET")
            ) or (text[index] == "-" and after in tuple("$€£"))  # fmt: skip
        if text[index] == "#":
            return after.isalnum()
        if text[index] in "<>":
            return index == 0 and comparison(text.rstrip("".join(_TRAIL))) is not None
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
        core = text[start:end]
        symbols = sum(not character.isalnum() for character in core)
        whole = core.isalpha() or (symbols <= _MAX_IN_ADDRESS and ADDRESS.fullmatch(core))
        if end - start > _LONG_WORD and not whole:
            while end - start > _PART:
                self._one(start, start + _PART, "", None)
                start += _PART
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
            reading, ending = abbreviation
            self._speak(start, end + 1, reading)
            # The period belongs to the word; it is heard only if the sentence ends there too.
            self.before, self.stop, self.ending = word, ".", ending
            self._marks(trail[1:], opening=False)
            return
        self._speak(start, end, "~A" if self._is_letter(word, trail, around) else
                    read_word(word, around))  # fmt: skip
        if is_phone_part(word, around.before):
            self.before = f"+{word}"
        self._marks(trail, opening=False)

    @staticmethod
    def _is_letter(word: str, trail: str, around: _Around) -> bool:
        """Tell whether an "a" that no word follows is the letter, not the article."""
        return (word in ("a", "A") and trail.strip("*_`") != "") or (
            word == "A" and not around.after()
        )

    def _symbols(self, text: str) -> None:
        """Read a token of symbols and punctuation only; long ones are decoration."""
        if len(text) > _MAX_SYMBOLS or not any(c in SYMBOLS or c in _OPERATORS for c in text):
            self._marks(text, opening=False)
            return
        token = self._lexer.peek(1) if len(text) <= 2 else None
        after = token.text if token and token.kind is Kind.TEXT else ""
        core = text.rstrip(".,;:!?\"”')")
        reading = read_unit(core, _Around(self.before, None)) if core else None
        if reading is None and text in CURRENCIES and after[:1].isdigit():
            self.before = text  # Its name comes behind the amount.
            return
        if core and reading is None:
            reading = read_symbol(core, self.before, after)
        if reading:
            self._speak(0, len(core), reading)
            if core in CURRENCIES:
                self.before = ""  # It was the amount before's, not the next one's.
            text = text[len(core) :]
        self._marks(text, opening=False)

    def _speak(self, start: int, end: int, reading: str) -> None:
        if not reading.strip(" ,"):
            return
        self.items.append(Spoken(*self._token.span(start, end), reading))
        self.before = self._token.text[start:end]
        self.stop = ""
        self.ending = "any"
        self.spoken = True

    def _marks(self, text: str, *, opening: bool) -> None:
        """Add the marks of a run of punctuation: each kind of pause once, quotes as they open."""
        if ".." in text:
            text = re.sub(r"\.{2,}", "…", text)
        # A hyphen before a word marks an option or a suffix; it is no dash.
        text = text.replace("-", "") if opening else text.replace("--", "—")
        for character, previous in zip(text, " " + text, strict=False):
            if character == previous:
                continue
            if opening and character in ".!?,;:|":
                continue
            if character in ".!?…":
                if self.stop != character:
                    self.items.append(Mark(character, PAUSE))
                self.stop = character
                self.before = ""
            elif character in ",;:—|–":
                shown = {"|": ",", "–": "—"}.get(character, character)
                self.items.append(Mark(shown, PAUSE))
                self.before = self.stop = ""
            elif character == "-" and text == "-":
                self.items.append(Mark("—", PAUSE))
            elif character in '"“”':
                opens = character == "“" or (character == '"' and opening)
                self.items.append(Mark("“" if opens else "”", OPEN if opens else CLOSE))
            elif character in "()":
                kind = OPEN if character == "(" else CLOSE
                self.items.append(Mark(character, kind))
