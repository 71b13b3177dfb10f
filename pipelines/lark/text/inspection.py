"""A quick look at a text before anything is synthesised."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.lark.text.characters import unspeakable
from pipelines.lark.text.items import End, Spoken
from pipelines.lark.text.lexer import Lexer
from pipelines.lark.text.sentences import ItemReader
from pipelines.lark.text.tables import SYMBOLS

_SOMETHING = re.compile(rf"[^\W_]|[{re.escape(''.join(SYMBOLS))}]")


@dataclass(frozen=True, slots=True)
class TextReport:
    """What will become of a text."""

    speakable: bool
    """Whether there is anything to speak."""
    left_out: tuple[str, ...]
    """The distinct characters that will not be spoken, as `SpeechReader.left_out` reports them."""


def inspect_text(text: str) -> TextReport:
    """Tell whether a text can be spoken and what will be left out, without reading it all."""
    left_out = tuple(unspeakable(text))
    return TextReport(_SOMETHING.search(text) is not None and _is_speakable(text), left_out)


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
