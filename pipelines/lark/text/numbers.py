# ruff: noqa: SIM905 -- lists of words
"""English number words.

Everything is a plain function from digits to words separated by single spaces. American usage:
no "and" inside a number ("one hundred five").
"""

from __future__ import annotations

import itertools

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = ["", "", *"twenty thirty forty fifty sixty seventy eighty ninety".split()]
_SCALES = ["", *"thousand million billion trillion quadrillion".split()]
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_DENOMINATORS = {2: ("half", "halves"), 4: ("quarter", "quarters")}

MAX_CARDINAL_DIGITS = 3 * len(_SCALES)
"""Longer numbers are read digit by digit."""


def _below_thousand(number: int) -> list[str]:
    words = []
    if number >= 100:
        words += [_ONES[number // 100], "hundred"]
        number %= 100
    if number >= 20:
        words.append(_TENS[number // 10])
        number %= 10
        if number:
            words.append(_ONES[number])
    elif number:
        words.append(_ONES[number])
    return words


def cardinal(digits: str) -> str:
    """Read digits as a quantity: "1234" is "one thousand two hundred thirty four"."""
    if len(digits) > MAX_CARDINAL_DIGITS:
        return spelled(digits)
    number = int(digits)
    if number == 0:
        return "zero"
    groups: list[list[str]] = []
    scale = 0
    while number:
        number, group = divmod(number, 1000)
        if group:
            groups.append(_below_thousand(group) + ([_SCALES[scale]] if scale else []))
        scale += 1
    return " ".join(word for group in reversed(groups) for word in group)


def ordinal(digits: str) -> str:
    """Read digits as a rank: "23" is "twenty third"."""
    head, _, last = cardinal(digits).rpartition(" ")
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = (last[:-1] + "ie" if last.endswith("y") else last) + "th"
    return f"{head} {last}".strip()


def spelled(digits: str) -> str:
    """Read digits one by one, with a short pause between groups of three or four, or of five."""
    count = 1 if len(digits) == 5 else -(-len(digits) // 4)
    size, longer = divmod(len(digits), count)
    ends = [size * i + min(i, longer) for i in range(count + 1)]
    groups = [digits[start:end] for start, end in itertools.pairwise(ends)]
    return " , ".join(" ".join(_ONES[int(digit)] for digit in group) for group in groups)


def pairs(digits: str) -> str:
    """Read a four-digit number as years are read: "1905" is "nineteen oh five"."""
    high, low = digits[:2], digits[2:]
    if high[0] == "0" or (high[1] == "0" and low[0] == "0"):
        return cardinal(digits)
    if low == "00":
        return f"{cardinal(high)} hundred"
    if low[0] == "0":
        return f"{cardinal(high)} oh {cardinal(low)}"
    return f"{cardinal(high)} {cardinal(low)}"


def decade(digits: str) -> str:
    """Read "1990" or "90" as the plural of a decade: "nineteen nineties"."""
    words = pairs(digits) if len(digits) == 4 else cardinal(digits)
    return plural(words)


def plural(words: str) -> str:
    """Make the last of some number words plural: "ninety" becomes "nineties"."""
    if words.endswith("y"):
        return words[:-1] + "ies"
    return words + ("es" if words.endswith("x") else "s")


def decimal(whole: str, fraction: str) -> str:
    """Read a decimal number given its two parts as digits, either of which may be empty."""
    parts = [cardinal(whole)] if whole else []
    if fraction:
        parts += ["point", " ".join(_ONES[int(digit)] for digit in fraction)]
    return " ".join(parts)


def fraction(numerator: str, denominator: str) -> str:
    """Read a proper fraction: "3", "4" is "three quarters"."""
    one = int(numerator) == 1
    singular, several = _DENOMINATORS.get(int(denominator)) or (
        ordinal(denominator),
        ordinal(denominator) + "s",
    )
    return f"{cardinal(numerator)} {singular if one else several}"


def code(digits: str) -> str:
    """Read digits inside a code such as "A380" or "B2": short ones whole, long ones in pieces."""
    if (digits[0] == "0" and len(digits) > 1) or len(digits) > 4:
        return spelled(digits)
    if len(digits) == 4:
        return pairs(digits)
    if len(digits) == 3 and not digits.endswith("00"):
        middle = f"oh {cardinal(digits[2])}" if digits[1] == "0" else cardinal(digits[1:])
        return f"{cardinal(digits[0])} {middle}"
    return cardinal(digits)
