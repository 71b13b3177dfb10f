"""A quick look at a text before anything is synthesised."""

from __future__ import annotations

from engine import TextReport
from pipelines.lark.text.characters import fold, unspeakable
from pipelines.lark.text.items import End, Spoken
from pipelines.lark.text.lexer import Lexer
from pipelines.lark.text.sentences import ItemReader
from pipelines.lark.text.tables import SYMBOLS


def inspect_text(text: str) -> TextReport:
    """Tell whether a text can be spoken and what will be left out, without reading it all."""
    left_out = tuple(unspeakable(text))
    hopeful = any(map(_may_be_spoken, set(text)))
    return TextReport(hopeful and _is_speakable(text), left_out)


def _may_be_spoken(character: str) -> bool:
    return any(c.isalnum() or c in SYMBOLS for c in fold(character) or "")


def _is_speakable(text: str) -> bool:
    lexer = Lexer()
    lexer.push(text)
    lexer.close()
    items = ItemReader(lexer)
    while True:
        for item in items.step():
            if isinstance(item, Spoken):
                return True
            if isinstance(item, End) and item.final:
                return False
