# ruff: noqa: RUF001 -- dashes
"""The reading of one written word among its neighbours."""

from __future__ import annotations

import re
from typing import Literal

from pipelines.lark.text import numbers
from pipelines.lark.text.characters import greek, latin
from pipelines.lark.text.codes import (
    ADDRESS,
    LETTER,
    MAX_LETTERS,
    in_parts,
    read_address,
    read_code,
    romanised,
)
from pipelines.lark.text.context import NOWHERE, Around
from pipelines.lark.text.quantities import (
    is_phone_part,
    read_quantity,
    read_unit,
)
from pipelines.lark.text.tables import (
    ABBREVIATIONS,
    AFTER_ONE,
    BEFORE_NUMBER,
    CURRENCIES,
    MID_SENTENCE,
    MONTHS,
    RESPELLED,
    ROMAN_CARDINAL,
    ROMAN_ORDINAL,
    SCALE_WORDS,
    STREETS,
    TITLES,
    UNITS,
    WEEKDAYS,
    WORDS,
)

_PLAIN = re.compile(rf"{LETTER}+(?:['-]{LETTER}+)*'?")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN_LONG = re.compile(r"[CDM]")
_ROMAN_LETTERS = frozenset("IVX")
"""Letters that are a number even alone; the others are rather grades and classes."""
_INITIALS = re.compile(rf"(?:{LETTER}\.)+{LETTER}|(?:[A-Z][a-z]?\.)+[A-Z][a-z]?")
_PLURAL_CHOICE = re.compile(rf"{LETTER}{{2,}}\(e?s\)?")
_DAYS = re.compile(r"([A-Z][a-z]{2,4})[-–]([A-Z][a-z]{2,4})")
_DAY = re.compile(r"[1-9]|[12]\d|3[01]")
_MONEY = re.compile(r"[$€£¥₹₩][\d.,$€£–-]+")


def read_word(text: str, around: Around) -> str:
    """Read a word that no abbreviating period follows."""
    if text in WORDS:
        return WORDS[text]
    if text.lower() in RESPELLED:
        return RESPELLED[text.lower()]
    span = _DAYS.fullmatch(text)
    if span is not None and all(part in WEEKDAYS for part in span.groups()):
        return f"{WEEKDAYS[span[1]]} to {WEEKDAYS[span[2]]}"
    if span is not None and all(part in MONTHS for part in span.groups()):
        return f"{MONTHS[span[1]]} to {MONTHS[span[2]]}"
    if _PLAIN.fullmatch(text):
        return _read_plain(text, around)
    if around.before in CURRENCIES and text[0].isdigit():
        money = read_quantity(around.before + text, around)
        if money is not None:
            return money
    if is_phone_part(text, around.before):
        return numbers.spelled(text).replace(" ,", "")
    quantity = read_quantity(text, around)
    if quantity is not None:
        return quantity
    unit = read_unit(text, around)
    if unit is not None:
        return unit
    if ADDRESS.fullmatch(text):
        return read_address(text)
    if _INITIALS.fullmatch(text):
        return ABBREVIATIONS.get(text) or "~" + text.replace(".", "")
    if "–" in text[1:-1] and any(character.isdigit() for character in text):
        return " to ".join(read_word(part, NOWHERE) for part in text.split("–") if part)
    if "-" in text and all(part.isalnum() for part in text.split("-")):
        return " ".join(read_word(part, NOWHERE) for part in text.split("-"))
    if text[0] == "@" and len(text) > 1:
        return f"at {read_code(text[1:])}"
    if text[0] == "#" and len(text) > 1:
        return f"hashtag {read_code(text[1:])}"
    if _PLURAL_CHOICE.fullmatch(text):
        return text.partition("(")[0] + "s"
    return read_code(text)


def _read_plain(text: str, around: Around) -> str:
    unit = read_unit(text, around)
    if unit is not None and text not in SCALE_WORDS:
        return unit
    if text == "x" and around.after()[:1].isdigit():
        if around.before.isdigit():
            return "times"
        if around.before.lstrip("0123456789.,") in UNITS:
            return "by"
    if text in SCALE_WORDS and _MONEY.fullmatch(around.before):
        currency = {"€": "euros", "£": "pounds", "¥": "yen", "₹": "rupees", "₩": "won"}
        return f"{text} {currency.get(around.before[0], 'dollars')}"
    if text in MONTHS and text not in ("Mar", "May") and text != MONTHS[text]:
        return MONTHS[text]
    if text == "Mar" and _DAY.fullmatch(around.before):
        return MONTHS[text]
    if text in WEEKDAYS and text not in ("Mon", "Wed", "Sat", "Sun"):
        return WEEKDAYS[text]
    if text in BEFORE_NUMBER and text[0] == "M" and around.after()[:1].isdigit():
        return BEFORE_NUMBER[text]
    if text in TITLES and text != "St" and text not in ("Hon", "Gen", "Pres", "Rep", "Col", "Fr"):
        return TITLES[text]
    if text == "St" and around.after()[:1].isupper():
        return "Saint"
    roman = _read_roman(text, around)
    if roman is not None:
        return roman
    if any(greek(character) for character in text):
        return " ".join(romanised(part) if greek(part[0]) else in_parts(part)
                        for part in re.findall(r"[Ͱ-῿Ωµ]+|[^Ͱ-῿Ωµ]+", text))  # fmt: skip
    return _read_letters(text)


def _read_letters(text: str) -> str:
    if re.search(r"[a-z][A-Z]", text) and not re.match(r"(?:Mac|Mc|O'|De|Le|La|i|e)[A-Z]", text):
        return read_code(text)
    if len(text) > MAX_LETTERS and not ("-" in text or "'" in text):
        return in_parts(text)
    if "-" in text:
        parts = text.split("-")
        if any(len(part) > MAX_LETTERS for part in parts) or len(parts) > 3:
            return " ".join(in_parts(part) for part in parts if part)
        return " ".join(f"~{part}" if len(part) == 1 and part not in "aAI" else part
                        for part in parts) if any(len(p) == 1 for p in parts) else text  # fmt: skip
    if "'" in text and any(len(part) > MAX_LETTERS for part in text.split("'")):
        return " ".join(in_parts(part) for part in text.split("'") if part)
    if len(text) == 1 and text not in "aAI":
        return f"~{latin(text) or text}"
    return text


def _read_roman(text: str, around: Around) -> str | None:
    if not text.isupper() or not _ROMAN.fullmatch(text):
        return None
    before = around.before
    values = [_ROMAN_VALUES[letter] for letter in text]
    value = sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))
    if len(text) == 1 and text not in _ROMAN_LETTERS:
        return None  # "grade C"
    if text == "I" and not (before[:1].isupper() or around.after() in AFTER_ONE):
        return None  # "the part I like"
    if _ROMAN_LONG.search(text) and len(text) < 5:
        return None  # "MIX", "CD", "DC"
    if before.lower() in ROMAN_CARDINAL and before != text:
        return numbers.cardinal(str(value))
    if before in ROMAN_ORDINAL and text != "I":
        return f"the {numbers.ordinal(str(value))}"
    if len(text) < 3 or text == "XXX":
        return None
    century = around.after().lower() in ("century", "centuries")
    if century:
        return numbers.ordinal(str(value))
    return numbers.pairs(str(value)) if value > 1000 else numbers.cardinal(str(value))


Ending = Literal["any", "capital", "starter", "never"]
"""What must follow the period of a word for a sentence to end there."""


def read_abbreviation(text: str, around: Around) -> tuple[str, Ending] | None:
    """Read a word with the period after it as an abbreviation.

    Returns:
        The reading and when the sentence ends there too, or None if the period is a full stop.
    """
    measure = read_unit(text if text != "in" else "inch", around)
    if measure is not None:
        return measure, "capital"
    if text in BEFORE_NUMBER and around.after()[:1].isdigit():
        return BEFORE_NUMBER[text], "never"
    if text in ("Vol", "Ch", "Pt", "Fig") and _ROMAN.fullmatch(around.after() or "-"):
        return BEFORE_NUMBER[text], "never"
    if text in STREETS and around.before[:1].isupper() and text not in ("Pl", "Sq", "Ct"):
        after = around.after()
        if text not in TITLES or not after[:1].isupper():
            return STREETS[text], "capital"
        if text == "St":
            return STREETS[text], "starter"
    if text in TITLES:
        return _read_title(text, around.after())
    if text in ABBREVIATIONS:
        return ABBREVIATIONS[text], "never" if text in MID_SENTENCE else "capital"
    if _INITIALS.fullmatch(text):
        return "~" + text.replace(".", ""), "starter"
    if len(text) == 1 and text.isalpha() and text.isupper() and text != "I" and latin(text):
        return f"~{latin(text)}", "starter"
    return None


def _read_title(text: str, after: str) -> tuple[str, Ending] | None:
    certain = text in ("Mr", "Mrs", "Ms", "Dr", "Prof")
    if after[:1].isupper() or after[:1].isdigit() or certain:
        return TITLES[text], "never" if after else "any"
    return None if text in ("St", "Hon", "Col", "Fr", "Pres") else (TITLES[text], "never")
