# ruff: noqa: RUF001 -- tables of characters and of words
"""What each character of Unicode is to an English voice.

`fold` is the one judge of that: it decides what the reader speaks and what `left_out` reports, so
the quick look before synthesis and the reading itself cannot disagree.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache

from pipelines.lark.text.tables import GREEK, SYMBOLS

ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")

_FOLDS = {
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "ʼ": "'", "ʹ": "'", "′": "'", "‹": "'", "›": "'",
    "`": "`", "´": "'", "″": '"', "„": "“", "‟": "“", "«": "“", "»": "”", "「": "“", "」": "”",
    "『": "“", "』": "”", "《": "“", "》": "”", "〈": "“", "〉": "”", "“": "“", "”": "”",
    "‐": "-", "‑": "-", "‒": "–", "–": "–", "—": "—", "―": "—", "−": "-", "⸺": "—", "⸻": "—",
    "…": "…", "⋯": "…", "‥": "…", "。": ".", "｡": ".", "！": "!", "？": "?", "、": ",", "､": ",",
    "，": ",", "；": ";", "：": ":", "؟": "?", "،": ",", "؛": ";", "۔": ".", "।": ".", "॥": ".",
    "‼": "!", "⁇": "?", "⁈": "?", "⁉": "!", "‽": "?", "¿": " ", "¡": " ", "⁄": "/", "∕": "/",
    "•": "|", "‣": "|", "◦": "|", "▪": "|", "●": "|", "○": "|", "■": "|", "·": " ", "∙": "|",
    "№": "No.", "™": "", "®": "", "℠": "", "ß": "ss", "ẞ": "SS", "ı": "i", "ŀ": "l", "ŉ": "n",
    "ª": "a", "º": "o", "\u00ad": "", "\ufffc": "",
}  # fmt: skip
_SUPERSCRIPTS = {c: f"^{i}" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_LATIN_NAME = re.compile(
    r"LATIN (?:CAPITAL |SMALL )?LETTER (?:[A-Z]+ )*?([A-Z]|AE|OE|OU|DZ|LJ|NJ|IJ)"
    r"(?: WITH .*| DIGRAPH)?$"
)
_LATIN_WORDS = {"THORN": "th", "ETH": "th", "ENG": "ng", "SCHWA": "e", "ESH": "sh", "EZH": "zh"}


def fold(character: str) -> str | None:
    """Return what stands for a character in the reading.

    The result is a short string over printable ASCII, accented Latin and Greek letters, named
    symbols and a few marks; "" for what is silent by nature (zero-width and control characters);
    " " for foreign punctuation, which only separates; None for what cannot be spoken.
    """
    if " " <= character <= "~":
        return character
    return _fold(character)


@lru_cache(maxsize=8192)
def _fold(character: str) -> str | None:
    if character in _FOLDS:
        return _FOLDS[character]
    if character in _SUPERSCRIPTS:
        return _SUPERSCRIPTS[character]
    if character in SYMBOLS:
        return character
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Mn", "Me", "Sk"):
        return ""
    if category[0] == "L" and latin(character) is not None:
        return character if category in ("Lu", "Ll") and _is_plain(character) else latin(character)
    if greek(character) is not None:
        return character
    if category == "Nd":
        return str(unicodedata.digit(character))
    compatible = unicodedata.normalize("NFKC", character)
    if compatible != character:
        folded = [fold(part) for part in compatible]
        return None if None in folded else "".join(part or "" for part in folded)
    if category[0] == "P":
        return " "
    return None


def _is_plain(character: str) -> bool:
    """Tell whether a Latin letter is one a dictionary might hold (no styled or wide form)."""
    return unicodedata.normalize("NFKC", character) == character


def latin(character: str) -> str | None:
    """Return the ASCII letters nearest to a Latin letter, None for other characters."""
    if character.isascii():
        return character if character.isalpha() else None
    decomposed = unicodedata.normalize("NFKD", character)
    base = "".join(part for part in decomposed if not unicodedata.combining(part))
    if base.isascii() and base.isalpha():
        return base
    name = unicodedata.name(character, "")
    if not name.startswith("LATIN"):
        return None
    letters = next((value for key, value in _LATIN_WORDS.items() if key in name.split()), None)
    if letters is None:
        match = _LATIN_NAME.match(name)
        if match is None:
            return None
        letters = match.group(1).lower()
    return letters.capitalize() if character.isupper() else letters


def greek(character: str) -> tuple[str, str] | None:
    """Return the name and the Latin letters of a Greek letter, None for other characters."""
    if character < "Ͱ" or (character > "῿" and character not in "Ωµ"):
        return None
    base = unicodedata.normalize("NFKD", character)[0]
    return GREEK.get(base.lower())


def unspeakable(text: str) -> list[str]:
    """List the distinct characters of a text that cannot be spoken, in order of appearance.

    A lone surrogate is reported as U+FFFD, since nothing could encode it on its way to the reader
    of the report.
    """
    if text.isascii() and "&" not in text:
        return []
    if "&" in text:
        text = ENTITY.sub(lambda match: html.unescape(match.group()), text)
    left_out = (c for c in dict.fromkeys(text) if fold(c) is None)
    return list(dict.fromkeys("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in left_out))


def clean(raw: str, start: int) -> tuple[str, list[int], list[int]]:
    """Fold a piece of text, keeping for each resulting character where it came from.

    Args:
        raw: The piece as written.
        start: Its offset in the whole input.

    Returns:
        The folded text, in which " " separates words, and the start and the end in the input of
        each of its characters.
    """
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    while position < len(raw):
        character = raw[position]
        width = 1
        if character == "&":
            match = ENTITY.match(raw, position)
            if match:
                width = match.end() - position
                character = html.unescape(match.group())
                if character == match.group():
                    width, character = 1, "&"
        elif text and not character.isascii() and unicodedata.combining(character):
            composed = unicodedata.normalize("NFC", text[-1] + character)
            if len(composed) == 1 and fold(composed) == composed:
                text[-1] = composed
            ends[-1] = start + position + 1
            position += 1
            continue
        for part in character:
            folded = fold(part)
            for piece in " " if folded is None else folded:
                text.append(piece)
                starts.append(start + position)
                ends.append(start + position + width)
        position += width
    return "".join(text), starts, ends
