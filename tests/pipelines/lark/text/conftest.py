"""What the tests of the text reader share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from pipelines.lark.text import Phonemizer, Phrase, SpeechReader
from pipelines.lark.text.items import Mark, Spoken
from pipelines.lark.text.lexer import Lexer
from pipelines.lark.text.sentences import ItemReader

Read = Callable[..., tuple[list[Phrase], SpeechReader]]


@pytest.fixture(scope="session")
def phonemizer() -> Phonemizer:
    return Phonemizer()


@pytest.fixture(scope="session")
def read(phonemizer: Phonemizer) -> Read:
    """Read a text given in one piece or several, reading after each piece, to its end."""

    def read_all(pieces: str | Iterable[str]) -> tuple[list[Phrase], SpeechReader]:
        reader = SpeechReader(phonemizer)
        phrases: list[Phrase] = []
        for piece in [pieces] if isinstance(pieces, str) else pieces:
            reader.push(piece)
            if not isinstance(pieces, str):
                phrases.extend(iter(reader.read, None))
        reader.close()
        phrases.extend(iter(reader.read, None))
        assert reader.finished
        return phrases, reader

    return read_all


@pytest.fixture(scope="session")
def phonemes(phonemizer: Phonemizer, read: Read) -> Callable[[str], str]:
    """Return the phonemes of a text as a string, "|" for the pads."""
    symbols = {index: symbol for symbol, index in phonemizer.vocabulary.items()} | {0: "|"}

    def spoken(text: str) -> str:
        phrases, _ = read(text)
        return "".join(symbols[index] for phrase in phrases for index in phrase.ids)

    return spoken


@pytest.fixture(scope="session")
def readings() -> Callable[[str], str]:
    """Return the words and marks of a text as read, without phonemes; "/" ends a sentence."""

    def spoken(text: str) -> str:
        lexer = Lexer()
        lexer.push(text)
        lexer.close()
        items = ItemReader(lexer)
        parts: list[str] = []
        while True:
            for item in items.step():
                if isinstance(item, Spoken):
                    parts.append(item.reading)
                elif isinstance(item, Mark):
                    parts.append(item.character)
                elif item.final:
                    return " ".join(parts).strip("/ ")
                elif parts and parts[-1] != "/":
                    parts.append("/")

    return spoken
