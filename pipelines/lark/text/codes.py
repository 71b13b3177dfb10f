# ruff: noqa: RUF001 -- tables of characters and of words
"""Readings of what is neither a plain word nor a quantity: addresses, names of files, code.

Readings use the notation of `quantities`. `read_code` never fails: whatever letters and digits a
token has are spoken, and of its symbols those that have a name.
"""

from __future__ import annotations

import re

from pipelines.lark.text import numbers
from pipelines.lark.text.characters import greek
from pipelines.lark.text.tables import CURRENCIES, FRACTION_SIGNS, SPOKEN_SUFFIXES, SYMBOLS

ADDRESS = re.compile(
    r"(?:[a-zA-Z][a-zA-Z0-9+.-]*://|www\.)\S+"
    r"|(?:mailto:)?[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?:[\w-]+\.)+(?:com|org|net|edu|gov|io|co|uk|de|fr|info|biz|dev|app|me|ly|ai|eu|ch)"
    r"(?:/\S*)?",
    re.IGNORECASE,
)
"""Web and e-mail addresses."""

LETTER = rf"[^\W\d_{''.join(sorted(FRACTION_SIGNS))}]"
_PIECE = re.compile(rf"\d+|{LETTER}+(?:'{LETTER}+)*|_+|.")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z']+|[A-Z]+|[^A-Za-z']+")
_NAMES_IN_ADDRESS = {
    ".": "dot", "-": "dash", "_": "underscore", ":": "colon", "?": "question mark", "~": "tilde",
    "%": "percent", "+": "plus", "=": "equals", "&": "and", "@": "at", "#": "hash", "/": "slash",
}  # fmt: skip
_NAMES_IN_CODE = {**SYMBOLS, "*": "times", "~": "tilde"}
_PAUSES = frozenset(",;:!?…—|")
_VOWELS = frozenset("aeiouyAEIOUY")
MAX_LETTERS = 20
"""Longer runs of letters are no words; they are read in parts of this length."""


def read_address(text: str) -> str:
    """Read a URL or an e-mail address; its scheme is not spoken."""
    body = re.sub(r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*://|mailto:)", "", text)
    body = body.rstrip("/") or text
    words: list[str] = []
    position = text.index(body)
    for piece in _PIECE.findall(body):
        if piece[0] in _NAMES_IN_ADDRESS:
            words.append(_NAMES_IN_ADDRESS[piece[0]])
        elif piece.isdigit():
            words.append(numbers.code(piece))
        elif piece[0].isalpha():
            dotted = bool(words) and words[-1] == "dot" and position > text.find("@")
            words.append(_part(piece, after_dot=dotted))
        position += len(piece)
    return " ".join(words) or read_code(text)


def read_code(text: str) -> str:
    """Read any token: words out of snake_case and camelCase, numbers, named symbols."""
    words: list[str] = []
    pieces = [*_PIECE.findall(text), ""]
    generic = "<" in pieces and ">" in pieces
    for index, piece in enumerate(pieces[:-1]):
        before = pieces[index - 1] if index else ""
        after = pieces[index + 1]
        if before == "^" and piece in ("2", "3"):
            continue
        between = bool(before and after) and before[-1].isalnum() and after[0].isalnum()
        if piece.isdigit():
            words.append(_digits(piece, before, after))
        elif piece[0].isalpha():
            words.append(_letters(piece, before, after))
        elif piece == ".":
            point = before.isdigit() and after.isdigit()
            if after[:1].isalnum():
                words.append("point" if point else "dot")
        elif piece == "*":
            if between and (before + after).isalnum():
                words.append("times")
        elif piece in "-/" and before.isdigit() and after.isdigit():
            words.append("to" if piece == "-" else "over")
        elif piece == "^" and after in ("2", "3"):
            words.append("squared" if after == "2" else "cubed")
        elif piece in "<>" and generic:
            continue
        elif piece in _NAMES_IN_CODE:
            words.append(_NAMES_IN_CODE[piece])
        elif piece in _PAUSES and words and after:
            words.append(",")
    return " ".join(words).replace(", ,", ",")


def _digits(piece: str, before: str, after: str) -> str:
    if before == "." and after != ".":
        return " ".join(numbers.cardinal(digit) for digit in piece)
    if len(piece) > 9:
        return numbers.spelled(piece)
    alone = not (before[-1:].isalpha() or after[:1].isalpha() or before == "-")
    if alone and not (len(piece) > 1 and piece[0] == "0"):
        return numbers.cardinal(piece)
    return numbers.code(piece)


def _letters(piece: str, before: str, after: str) -> str:
    if before == "." and not after:
        return _part(piece, after_dot=True)
    if len(piece) == 1:
        names = greek(piece)
        return names[0] if names else f"~{piece}"
    if "&" in (before, after) and piece.isupper() and len(piece) <= 3:
        return f"~{piece}"
    if before.isdigit() and piece.isupper() and len(piece) <= 4:
        return f"~{piece}"
    parts = (part for part in _HUMPS.findall(piece) if part.strip("'"))
    return " ".join(_part(part, after_dot=False) for part in parts)


def _part(piece: str, after_dot: bool) -> str:
    """Read a run of letters as a word or, where it cannot be one, letter by letter."""
    letters = piece.replace("'", "")
    if greek(piece[0]) is not None:
        return romanised(piece)
    if len(letters) == 1:
        return f"~{letters}"
    spell = not _VOWELS.intersection(letters) and len(letters) <= 5 and letters.isascii()
    if after_dot and len(letters) <= 3:
        spell = letters.lower() not in SPOKEN_SUFFIXES
    return f"~{letters}" if spell else in_parts(piece)


def romanised(word: str) -> str:
    """Read a Greek word by the sounds of its letters, a single letter by its name."""
    names = [greek(character) for character in word]
    if len(word) == 1 and names[0]:
        return names[0][0]
    return in_parts("".join(n[1] if n else c for n, c in zip(names, word, strict=True)))


def in_parts(letters: str) -> str:
    """Cut a run of letters that is too long for one word."""
    if len(letters) <= MAX_LETTERS:
        return letters
    return " ".join(letters[i : i + MAX_LETTERS] for i in range(0, len(letters), MAX_LETTERS))


def read_symbol(text: str, before: str, after: str) -> str | None:
    """Read a symbol that stands alone between two words; None if it is silent."""
    if text in ("*", "x", "·") and before.isdigit() and after[:1].isdigit():
        return "times"
    if text in "-/" and before.isdigit() and after[:1].isdigit():
        return "minus" if text == "-" else "divided by"
    if text == "–" and before.isdigit() and after[:1].isdigit():
        return "to"
    if text in ("*", "_", "-", "–", "—", "|", "~"):
        return "about" if text == "~" and after[:1].isdigit() else None
    if len(text) > 2 and len(set(text)) == 1 and text[0] not in CURRENCIES:
        return None
    names = {"->": "to", "=>": "gives", "<-": "from", "==": "equals", "!=": "is not", "&&": "and",
             "<=": "at most", ">=": "at least", "//": None, "##": None, "~~": None}  # fmt: skip
    if text in names:
        return names[text]
    return read_code(text) or None
