"""Readings of plain numbers and of sums of money; in the notation of `quantities`."""

from __future__ import annotations

import re

from pipelines.lark.text import numbers
from pipelines.lark.text.context import Around
from pipelines.lark.text.tables import (
    CURRENCIES,
    CURRENCY_CODES,
    DOLLARS,
    SCALE_WORDS,
    SCALES,
    UNITS,
)

SIGNS = re.escape("".join(CURRENCIES))
PREFIX = rf"(?P<sign>{'|'.join(re.escape(code) for code in (*DOLLARS, *CURRENCY_CODES))}|[{SIGNS}])"
NUMBER = (
    r"(?P<number>\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d*\.?\d+)"
)
_COMMA = r"\d{1,3}(?:\.\d{3})*,\d\d|\d+,\d\d"
AMOUNT = rf"{NUMBER[:-1]}|{_COMMA})"
CODES = "|".join(code for code in CURRENCY_CODES if code.isalpha())
SCALE = rf"(?P<scale>{'|'.join(sorted(SCALES, key=len, reverse=True))})"


def number(text: str) -> str:
    """Read a number written with any usual separators, without sign."""
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?", text):
        text = text.replace(".", "").replace(",", ".")
    whole, point, fraction = text.replace(",", "").partition(".")
    if point:
        return numbers.decimal(whole, fraction)
    if len(whole) > 1 and whole[0] == "0":
        return numbers.spelled(whole)
    return numbers.cardinal(whole)


def is_one(text: str) -> bool:
    """Tell whether a number is one, which what is counted then agrees with."""
    return text.lstrip("+-") == "1"


def _with_point(amount: str) -> str:
    """Turn "1.299,00" into "1299.00"."""
    if re.fullmatch(_COMMA, amount):
        return amount.replace(".", "").replace(",", ".")
    return amount


def money(match: re.Match[str], around: Around) -> str | None:
    """Read a sum; its match has groups `sign` and `number`, perhaps `scale` and `rate`."""
    groups = match.groupdict()
    sign = groups["sign"]
    amount = _with_point(groups["number"])
    minus = "minus " if match.group().startswith("-") else ""
    special = DOLLARS.get(sign)
    one, many, cent, cents = CURRENCIES[CURRENCY_CODES.get(sign, "$" if special else sign)]
    many = special or many
    rate = groups.get("rate")
    tail = f" per {UNITS.get(rate[1:], (rate[1:],))[0]}" if rate else ""
    if groups.get("scale"):
        return f"{minus}{number(amount)} {SCALES[groups['scale']]} {many}{tail}"
    if not rate and around.after() in SCALE_WORDS:
        return minus + number(amount)
    whole, _, part = amount.replace(",", "").partition(".")
    if len(part) == 2 and cent:
        small = (
            "" if part == "00" else f"{number(str(int(part)))} {cent if part == '01' else cents}"
        )
        whole_words = f"{number(whole or '0')} {one if is_one(whole) else many}"
        if whole.strip("0") or not small:
            return f"{minus}{whole_words}{' and ' + small if small else ''}{tail}"
        return minus + small + tail
    return f"{minus}{number(amount)} {one if is_one(amount) and not special else many}{tail}"
