# ruff: noqa: RUF001, SIM905 -- tables of characters and of words
"""Readings of what begins with a number or a currency sign.

A reading is a string in a small notation: words separated by spaces, "~ABC" for letters spelled
one by one, and "," for a short pause. `read_quantity` gives None for what is no quantity.
"""

from __future__ import annotations

import re

from pipelines.lark.text import numbers
from pipelines.lark.text.amounts import (
    AMOUNT,
    CODES,
    NUMBER,
    PREFIX,
    SCALE,
    SIGNS,
    is_one,
    money,
    number,
)
from pipelines.lark.text.context import NOWHERE, Around, Rule
from pipelines.lark.text.dates import DATE_RULES, date
from pipelines.lark.text.formulas import comparison, power
from pipelines.lark.text.tables import (
    BEFORE_LABEL,
    BEFORE_NUMBER,
    BEFORE_SECONDS,
    CODE_WORDS,
    CURRENCIES,
    CURRENCY_CODES,
    DOLLARS,
    FRACTION_SIGNS,
    GLUED_ONLY,
    MONTH_WORDS,
    SCALES,
    SYMBOLS,
    UNITS,
)

_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
_PREPOSITIONS = frozenset(
    "in since by until from to year of during before after around circa".split()
)


def unit(text: str, one: bool) -> str | None:
    """Read a unit of measure or a ratio of two of them."""
    if text in UNITS:
        return UNITS[text][not one]
    base, power = text.rstrip("23"), text[-1:]
    if text.endswith(("^2", "^3")):
        base = text[:-2]
    if base != text and base in UNITS and base in ("m", "km", "cm", "mm", "ft", "mi", "yd"):
        return f"{'square' if power == '2' else 'cubic'} {UNITS[base][not one]}"
    top, slash, bottom = text.partition("/")
    if slash and top in UNITS and bottom in UNITS:
        return f"{UNITS[top][not one]} per {UNITS[bottom][0]}"
    base, power_sign, exponent = bottom.partition("^")
    if slash and power_sign and top in UNITS and base in UNITS:
        name = UNITS[base][0]
        if base == "s":
            return f"{UNITS[top][not one]} per {name} {'squared' if exponent == '2' else 'cubed'}"
        return f"{UNITS[top][not one]} per {'square' if exponent == '2' else 'cubic'} {name}"
    return None


def is_phone_part(text: str, before: str) -> bool:
    """Tell whether digits continue a telephone number that began with a plus sign."""
    if not text.isdigit():
        return False
    if before[:1] == "+":
        return 2 <= len(text) <= 8 and _PLUS.fullmatch(before) is not None
    return 3 <= len(text) <= 8 and _TRUNK.fullmatch(before) is not None


def _plain(match: re.Match[str], around: Around) -> str | None:
    digits = match.group()
    before = around.before
    if before in MONTH_WORDS and len(digits) <= 2 and 1 <= int(digits) <= 31:
        return numbers.ordinal(digits)
    if len(digits) <= 2 and 1 <= int(digits) <= 31 and around.after() in MONTH_WORDS:
        return f"{'' if before.lower() == 'the' else 'the '}{numbers.ordinal(digits)} of"
    if len(digits) >= 4 and before.lower() in CODE_WORDS:
        return numbers.spelled(digits)
    if len(digits) >= 10 and not digits.endswith("000"):
        return numbers.spelled(digits)
    if len(digits) == 4 and "1000" < digits < "2100":
        if before.lower() in _PREPOSITIONS or before in MONTH_WORDS:
            return numbers.pairs(digits)
        after = around.after()
        counted = after.islower() and after.endswith("s") and after not in ("was", "is", "has")
        if counted or after in UNITS:
            return numbers.cardinal(digits)
        return numbers.pairs(digits)
    return number(digits)


def _measure(match: re.Match[str], around: Around) -> str | None:
    if match["unit"] == "x" and around.after()[:1] in tuple("+-=*/^"):
        return f"{_signed(match)}{number(match['number'])} ~x"
    if match["unit"] == "m" and (_HOURS.fullmatch(around.before) or _SECONDS.match(around.after())):
        return f"{number(match['number'])} {UNITS['min'][not is_one(match['number'])]}"
    words = unit(match["unit"], is_one(match["number"]))
    return None if words is None else f"{_signed(match)}{number(match['number'])} {words}"


def _signed(match: re.Match[str]) -> str:
    return {"-": "minus ", "+": "plus ", "~": "about ", "±": "plus or minus "}.get(
        match.group()[0], ""
    )


def _fraction(match: re.Match[str], around: Around) -> str | None:
    top, bottom = match["top"], match["bottom"]
    if len(top) == 4 and len(bottom) == 2 and int(bottom) == (int(top) + 1) % 100:
        last = numbers.cardinal(bottom) if int(bottom) else numbers.cardinal(str(int(top) + 1))
        return f"{numbers.pairs(top)} {last}"
    if top == bottom:
        return f"{numbers.cardinal(top)} {numbers.cardinal(bottom)}"
    joined = "and " if around.before.isdigit() else ""
    if 0 < int(top) < int(bottom) and (int(bottom) <= 10 or bottom in ("12", "16", "32", "100")):
        return joined + numbers.fraction(top, bottom)
    day = date(None, int(top), int(bottom)) if len(top) <= 2 and len(bottom) <= 2 else None
    return day or f"{numbers.cardinal(top)} over {numbers.cardinal(bottom)}"


def _decade(match: re.Match[str], around: Around) -> str | None:
    before = around.before
    timed = before.lower() in BEFORE_SECONDS or before[:1].isdigit() or before in UNITS
    if timed and match.group() == f"{match[1]}s" and len(match[1]) == 2:
        return f"{numbers.cardinal(match[1])} seconds"
    return numbers.decade(match[1])


def _scaled(match: re.Match[str], around: Around) -> str | None:
    # "Apt. 4B", not four billion apartments.
    if around.before in BEFORE_NUMBER or around.before.lower() in BEFORE_LABEL:
        return None
    return f"{number(match['number'])} {SCALES[match['scale']]}"


def _fraction_sign(match: re.Match[str], around: Around) -> str | None:
    name = SYMBOLS[match["sign"]]
    if match["whole"]:
        return f"{numbers.cardinal(match['whole'])} and {name.replace('one', 'a')}"
    return f"and {name.replace('one', 'a')}" if around.before.isdigit() else name


def _compared(match: re.Match[str], around: Around) -> str | None:
    parts = comparison(match.group())
    if parts is None:
        return None
    rest = read_quantity(parts[1], around)
    return rest and f"{parts[0]} {rest}"


def _phone(match: re.Match[str], around: Around) -> str | None:
    plus = "plus " if match.group().startswith("+") else ""
    groups = re.findall(r"\d+", match.group())
    return plus + " , ".join(numbers.spelled(group).replace(" ,", "") for group in groups)


def _dotted(match: re.Match[str], around: Around) -> str | None:
    dotted, _, port = match.group().lstrip("vV").partition(":")
    parts = dotted.split(".")
    address = len(parts) == 4 and all(len(part) <= 3 for part in parts)
    spoken = f" {'dot' if address else 'point'} ".join(
        numbers.code(part) if address else numbers.cardinal(part) for part in parts
    )
    if port:
        return f"{spoken} port {numbers.code(port)}"
    return f"version {spoken}" if match.group()[0] in "vV" else spoken


def _range(match: re.Match[str], around: Around) -> str | None:
    left, right = match["left"], match["right"]
    sign = left[0] if left[0] in CURRENCIES else ""
    if sign and right[0].isdigit():
        left = left[1:]
        right = sign + right
    ending = re.search(rf"(?:{_UNIT}|{SCALE})$", right) if left[-1].isdigit() else None
    if sign and ending and ending.groupdict().get("scale") and ending.group() not in UNITS:
        left += ending.group()
    years = len(left) == len(right) == 4 and left < right
    if left.isdigit() and years and "1000" < left < "2100":
        return f"{numbers.pairs(left)} to {numbers.pairs(right)}"
    first = read_quantity(left, NOWHERE)
    second = read_quantity(right, NOWHERE if right.isdigit() else around)
    return f"{first} to {second}" if first and second else None


_RULES: tuple[Rule, ...] = (
    (r"\d+", _plain),
    *DATE_RULES,
    (r"(?:\+?\d{1,3}-)?(?:\(\d{3}\)-?|\d{3}-)?\d{3}-\d{4}|\d{3}-\d\d-\d{4}|\+\d{1,15}(?:-\d+)*"
     r"|\d{3}\.\d{3}\.\d{4}|\d+(?:-\d+){2,}", _phone),
    (rf"-?{PREFIX}{AMOUNT}{SCALE}?(?P<rate>/[a-z]+)?", money),
    (rf"{AMOUNT}(?P<sign>[{SIGNS}]|{CODES})", money),
    (r"(?P<numerator>\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)",
     lambda m, _: numbers.ordinal(m["numerator"].replace(",", ""))),
    (r"100s", lambda _, a: "hundreds" if a.after() == "of" else None),
    (r"1000s", lambda _, a: "thousands" if a.after() == "of" else None),
    (r"'?(\d0|\d{3}0)'?s", _decade),
    (r"[vV]\d+(?:\.\d+)+|\d+(?:\.\d+){2,}(?::\d{1,5})?",
     lambda m, a: _european(m) or _dotted(m, a)),
    (rf"[-+~±]?{NUMBER}", lambda m, _: _signed(m) + number(m["number"])),
    (rf"[-+~±]?{NUMBER}(?P<unit>{_UNIT}|[A-Za-zµμ]{{1,4}}/[A-Za-z]{{1,3}}(?:\^[23])?|[kcm]?m\^?[23])",
     _measure),
    (rf"{NUMBER}{SCALE}", _scaled),
    (r"(?P<hours>\d{1,2})h(?P<minutes>\d{1,2})(?:m|min)?",
     lambda m, _: f"{number(m['hours'])} {UNITS['h'][m['hours'] != '1']} "
     f"{number(m['minutes'])} {UNITS['min'][m['minutes'] != '1']}"),
    (r"\d.*[eE^].*", lambda m, _: power(m.group())),
    (r"[<>]=?.+", _compared),
    (r"(?P<top>\d{1,4})/(?P<bottom>\d{1,4})", _fraction),
    (rf"(?P<whole>\d*)(?P<sign>[{''.join(FRACTION_SIGNS)}])", _fraction_sign),
    (r"(?P<left>\d+):(?P<right>\d+)",
     lambda m, _: f"{numbers.cardinal(m['left'])} to {numbers.cardinal(m['right'])}"),
    (r"(?P<left>[1-9]\d{0,4}(?=x)|\d{2,5})[x×](?P<right>[1-9]\d{0,4})",
     lambda m, _: f"{numbers.code(m['left'])} by {numbers.code(m['right'])}"),
    (r"(?P<feet>\d)'(?P<inches>\d{1,2})",
     lambda m, _: f"{number(m['feet'])} foot {number(m['inches'])}"),
    (r"(?P<whole>\d{1,3}(?:\.\d{3})*),(?P<part>\d{1,2})",
     lambda m, _: numbers.decimal(m["whole"].replace(".", ""), m["part"])),
    (rf"(?P<left>[{SIGNS}]?[\d.,:]*\d\S*?)[-–—](?P<right>[{SIGNS}]?\d\S*)", _range),
    (r"(?:[Nn]o\.?|#)(?P<digits>\d+)", lambda m, _: f"number {number(m['digits'])}"),
)  # fmt: skip


def _european(match: re.Match[str]) -> str | None:
    text = match.group()
    return number(text) if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}", text) else None


_COMPILED = tuple((re.compile(pattern), handler) for pattern, handler in _RULES)
_FIRST = frozenset("0123456789.+-~±<>'vVnN#" + "".join(CURRENCIES) + "".join(FRACTION_SIGNS)) | {
    code[0] for code in (*DOLLARS, *CURRENCY_CODES)
}


def read_quantity(text: str, around: Around) -> str | None:
    """Read a token that is a quantity as a whole."""
    if text[0] not in _FIRST or text.isalpha():
        return None
    for pattern, handler in _COMPILED:
        match = pattern.fullmatch(text)
        if match:
            words = handler(match, around)
            if words:
                return words
    return None


def read_unit(text: str, around: Around) -> str | None:
    """Read a unit that stands apart from the number before it."""
    if around.before in ("sq", "cu") and text in UNITS:
        return UNITS[text][1]
    if not _NUMERIC.fullmatch(around.before) or text in GLUED_ONLY:
        return None
    if text in CURRENCIES:
        return CURRENCIES[text][not is_one(around.before)]
    if text in ("mn", "bn", "tn"):
        return SCALES[text]
    if text in CURRENCY_CODES and text.isalpha():
        return CURRENCIES[CURRENCY_CODES[text]][not is_one(around.before)]
    return unit(text, is_one(around.before))


_PLUS = re.compile(r"\+\d{1,8}")
_TRUNK = re.compile(r"0\d{2,4}")
"""The first group of a national telephone number: "0800 123 456"."""
_HOURS = re.compile(r"\d+h")
_SECONDS = re.compile(r"\d+s\b")
_NUMERIC = re.compile(rf"[-+~±]?[<>≤≥]?=?{AMOUNT}(?:[x×*]10\^[-+]?\d+)?")
