# ruff: noqa: RUF001 -- quotes and dashes
"""From tokens to items: markup is dropped, sentences end, words are read.

Each word is read in the light of its neighbours. The tokens ahead are only seen through
`Lexer.peek`, and nothing is changed before all that a step needs has been seen: a step that raises
`NeedMore` can be repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipelines.lark.text.items import End, Item
from pipelines.lark.text.lexer import Gap, Kind, Lexer, Token
from pipelines.lark.text.segments import Segments, is_list_number
from pipelines.lark.text.tables import STARTERS
from pipelines.lark.text.words import Ending

_LINK_TARGET = re.compile(r"\](?:\([^)]*\)?|\[[^\]]*\])")
_TABLE_RULE = re.compile(r"[|:\-+=]*-[|:\-+=]*")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[\w+#.-]*")
_LONG_LINE = 55
_MAX_TITLE = 12


@dataclass(slots=True)
class _Line:
    """What the current line of the text is."""

    fresh: bool = True
    block: bool = False
    start: int = 0
    end: int = 0
    quoted: bool = False


@dataclass(slots=True)
class _State:
    before: str = ""
    stop: str = ""
    ending: Ending = "any"
    line: _Line = field(default_factory=_Line)
    fenced: bool = False
    title: int = 0


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
        if self._is_markup(token.text, line):
            self._lexer.pop()
            state.line, state.before = line, before
            state.stop = "" if ended else state.stop
            return items
        token, title = self._without_targets(token)
        words = Segments(token, before, self._lexer, line.fresh).read() if token.text else None
        self._lexer.pop()
        state.title = title
        state.line = line
        line.fresh = False
        if words is None:
            return items
        state.before = words.before
        if words.spoken or words.stop:
            state.stop, state.ending = words.stop, words.ending
        elif ended:
            state.stop = ""
        if token.full_stop and state.stop:
            items += words.items
            state.stop, state.before = "", ""
            return [*items, End()]
        return items + words.items

    # -- lines and sentences ------------------------------------------------------------------

    def _line(self, token: Token) -> tuple[_Line, bool]:
        """Return the line the token is on and whether a sentence ends before the token."""
        old = self._state.line
        if token.gap < Gap.LINE:
            end = token.span(0, len(token.text))[1]
            line = _Line(old.fresh, old.block, old.start, end, old.quoted)
            return line, self._sentence_ends(token)
        start, end = token.span(0, len(token.text))
        return _Line(start=start, end=end), self._line_ends(token, old)

    def _line_ends(self, token: Token, line: _Line) -> bool:
        if token.gap is Gap.BLOCK or line.block or self._state.fenced or self._state.stop:
            return True
        first = token.text[0]
        if first == ">" and line.quoted:
            return False
        if first in "#|>`*+•-–" or is_list_number(token.text):
            return True
        return not (first.islower() or line.end - line.start >= _LONG_LINE)

    def _sentence_ends(self, token: Token) -> bool:
        state = self._state
        if not state.stop or state.ending == "never":
            return False
        letters = token.text.lstrip("\"'“([*_`#-—–")
        if not letters or letters[0].islower() or (token.gap is Gap.NONE and state.stop == "."):
            return False
        if letters[0] in ".,;:!?…)]":
            return False
        if state.stop == "…":
            return letters[0].isupper() or not letters[0].isalnum()
        if state.ending == "capital":
            return letters[0].isupper()
        if state.ending == "starter":
            return re.split(r"\W", letters)[0] in STARTERS
        return True

    # -- markup -------------------------------------------------------------------------------

    def _is_markup(self, text: str, line: _Line) -> bool:
        """Tell whether the token is markup of lines, noting what it makes of the line."""
        state = self._state
        if not line.fresh:
            return False
        if _FENCE.fullmatch(text) and not self._goes_on():
            state.fenced = not state.fenced
            line.block = True
            return True
        if state.fenced:
            line.block = True
            return False
        if text.strip(">") == "":
            line.quoted = True
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
        if is_list_number(text):
            line.block = True
        return _TABLE_RULE.fullmatch(text) is not None

    def _goes_on(self) -> bool:
        """Tell whether something follows on the same line."""
        token = self._lexer.peek(1)
        return token.kind is Kind.TEXT and token.gap < Gap.LINE

    def _without_targets(self, token: Token) -> tuple[Token, int]:
        """Take the targets of links out of a token.

        Returns:
            The rest, and through how many more tokens a target with a title may still go on.
        """
        title = self._state.title
        if title:
            closing = token.text.find(")")
            title = title - 1 if closing < 0 else 0
            token = token.without(0, closing + 1 or len(token.text))
        while target := _LINK_TARGET.search(token.text):
            label = token.text[: target.start()].lstrip("\"'“(*_!")
            if "[" in label[1:] or label[1:].isdigit():
                break
            unclosed = target.group().startswith("](") and not target.group().endswith(")")
            title = _MAX_TITLE if unclosed else 0
            token = token.without(*target.span())
        return token, title
