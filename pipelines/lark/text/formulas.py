# ruff: noqa: RUF001 -- signs of multiplication
"""Readings of comparisons, powers and scientific notation; in the notation of `quantities`."""

from __future__ import annotations

import re

from pipelines.lark.text import numbers

_COMPARISONS = {"<": "less than", ">": "more than", "<=": "at most", ">=": "at least"}
_COMPARED = re.compile(r"([<>]=?)([-+]?[\d.$€£].*)")
_POWER = re.compile(
    r"(?:(?P<factor>-?\d+(?:\.\d+)?)[x×*])?(?P<base>\d+)(?P<exponent>\^[-+]?\d+|-?(?:\^\d)+)"
    r"|(?P<mantissa>-?\d+(?:\.\d+)?)[eE](?P<shift>[-+]?\d{1,3})"
)
"""Superscript digits arrive as "^3" each, a superscript minus as "-" before the first."""


def comparison(text: str) -> tuple[str, str] | None:
    """Part the sign of a comparison from what it compares with: ">100" is "more than", "100"."""
    match = _COMPARED.fullmatch(text)
    return match and (_COMPARISONS[match[1]], match[2])


def power(text: str) -> str | None:
    """Read "1.6×10^-19" or "6e23"; None for what is neither, and for squares and cubes."""
    match = _POWER.fullmatch(text)
    if match is None:
        return None
    if match["mantissa"]:
        return f"{_decimal(match['mantissa'])} times {_raised('10', match['shift'])}"
    factor, base, exponent = match["factor"], match["base"], match["exponent"]
    if not factor and re.sub(r"\D", "", exponent) in ("2", "3") and "-" not in exponent:
        return None
    raised = _raised(base, exponent)
    return f"{_decimal(factor)} times {raised}" if factor else raised


def _raised(base: str, exponent: str) -> str:
    sign = "minus " if "-" in exponent else ""
    digits = re.sub(r"\D", "", exponent)
    return f"{numbers.cardinal(base)} to the power of {sign}{numbers.cardinal(digits)}"


def _decimal(text: str) -> str:
    whole, _, fraction = text.lstrip("-").partition(".")
    return ("minus " if text.startswith("-") else "") + numbers.decimal(whole, fraction)
