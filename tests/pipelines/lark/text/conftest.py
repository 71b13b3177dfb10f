"""What the tests of the text reader share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from pipelines.lark.text import Phonemizer, Phrase, SpeechReader

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
