"""Readings of dates and times of day."""

from __future__ import annotations

import re

from pipelines.lark.text import numbers
from pipelines.lark.text.context import Around, Rule
from pipelines.lark.text.tables import MONTH_NAMES

_HALF = r"(?P<half>[AaPp]\.?[Mm]\.?)"
_TIME = re.compile(
    rf"(?P<hour>\d{{1,2}}):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?:\.\d+)?{_HALF}?Z?"
)


def _time(match: re.Match[str], around: Around) -> str | None:
    hour, minute, second = match["hour"], match["minute"], match["second"]
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
        return None
    half = match["half"]
    if not (int(hour) or int(minute) or second or half):
        return "midnight"
    words = numbers.cardinal(hour)
    if int(minute):
        words += (" oh " if minute[0] == "0" else " ") + numbers.cardinal(minute)
    elif int(second or 0):
        words += " zero zero"
    elif not half and around.after().lower().replace(".", "") not in ("am", "pm"):
        words += " hundred" if int(hour) > 12 else " o'clock" if int(hour) else " zero zero"
    if int(second or 0):
        words += f" and {numbers.cardinal(second)} {'second' if int(second) == 1 else 'seconds'}"
    return f"{words} ~{half[0].upper()}M" if half else words


def date(year: str | None, month: int, day: int) -> str | None:
    """Read a date, None if there is no such day."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    words = f"{MONTH_NAMES[month - 1]} {numbers.ordinal(str(day))}"
    if year is None:
        return words
    if len(year) == 2:
        year = ("19" if year > "40" else "20") + year
    return f"{words} , {numbers.pairs(year)}"


def _date_iso(match: re.Match[str], around: Around) -> str | None:
    words = date(match["year"], int(match["month"]), int(match["day"]))
    if words is None or not match["time"]:
        return words
    clock = _time_text(match["time"], around)
    return words if clock is None else f"{words} , {clock}"


def _time_text(text: str, around: Around) -> str | None:
    match = _TIME.match(text)
    return match and _time(match, around)


def _date_slashes(match: re.Match[str], around: Around) -> str | None:
    first, second = int(match["first"]), int(match["second"])
    swap = first > 12 or "." in match.group()
    return date(match["year"], *((second, first) if swap else (first, second)))


def _hours(match: re.Match[str], around: Around) -> str | None:
    return f"{numbers.cardinal(match['hour'])} ~{match['half'][0].upper()}M"


DATE_RULES: tuple[Rule, ...] = (
    (r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)(?:T(?P<time>[\d:.]+))?Z?", _date_iso),
    (r"(?P<first>\d\d?)/(?P<second>\d\d?)/(?P<year>\d{4}|\d\d)", _date_slashes),
    (r"(?P<first>\d\d?)\.(?P<second>\d\d?)\.(?P<year>\d{4})", _date_slashes),
    (_TIME.pattern, _time),
    (rf"(?P<hour>\d{{1,2}}){_HALF}", _hours),
)  # fmt: skip
