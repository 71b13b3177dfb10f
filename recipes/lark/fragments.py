"""Parts of generated sentences: names, things, clauses, numbers, dates and amounts."""

from __future__ import annotations

import random
from collections.abc import Sequence

from recipes.lark import words

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def capital(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def list_of(items: Sequence[str], conjunction: str = "and") -> str:
    """Join items as a list in prose."""
    return f"{', '.join(items[:-1])}, {conjunction} {items[-1]}"


def person(source: random.Random) -> str:
    """Return a person's name."""
    first, last = source.choice(words.FIRST_NAMES), source.choice(words.LAST_NAMES)
    return source.choice(
        (
            f"{first} {last}",
            first,
            f"{source.choice(words.TITLES)} {last}",
            f"{first} {source.choice(LETTERS)}. {last}",
        )
    )


def noun_phrase(source: random.Random) -> str:
    """Return a thing, often with an adjective."""
    noun = source.choice(words.THINGS)
    if source.random() < 0.6:
        noun = f"{source.choice(words.ADJECTIVES)} {noun}"
    return noun


def with_article(noun: str) -> str:
    """Put the indefinite article before a noun."""
    return (
        f"an {noun}" if noun[0] in "aeiou" and not noun.startswith(("uni", "use")) else f"a {noun}"
    )


def object_phrase(source: random.Random) -> str:
    """Return a noun with an article or an owner."""
    noun = noun_phrase(source)
    owner = source.choice(("the", "the", "my", "your", "our", "their", "this", "that", "every"))
    return with_article(noun) if source.random() < 0.25 else f"{owner} {noun}"


def subject(source: random.Random) -> str:
    """Return somebody."""
    return source.choice(words.PEOPLE) if source.random() < 0.6 else person(source)


def clause(source: random.Random) -> str:
    """Return a clause in the past tense, without a full stop."""
    parts = [subject(source), source.choice(words.PAST_VERBS), object_phrase(source)]
    if source.random() < 0.2:
        parts.insert(1, source.choice(words.ADVERBS))
    if source.random() < 0.4:
        parts.append(source.choice(words.WHERE))
    if source.random() < 0.35:
        parts.append(source.choice(words.TIMES))
    return " ".join(parts)


def number_text(source: random.Random) -> str:
    """Return a number in one of the usual spellings."""
    scale = source.choice((10, 100, 100, 1000, 10_000, 1_000_000, 5_000_000_000))
    value = source.randrange(scale)
    style = source.random()
    if style < 0.6:
        return f"{value:,}"
    if style < 0.75:
        return f"{value % 1000}.{source.randrange(1, 100)}"
    if style < 0.85:
        return f"{source.randrange(1, 100)}{source.choice(('%', ' percent'))}"
    if style < 0.93:
        scales = ("million", "billion", "thousand", "hundred")
        return f"{source.randrange(2, 900)} {source.choice(scales)}"
    return str(value)


def date_text(source: random.Random) -> str:
    """Return a date, a year or a span of years."""
    month, day = source.choice(words.MONTHS), source.randrange(1, 29)
    year = source.choice((source.randrange(1500, 2000), source.randrange(1900, 2035)))
    return source.choice(
        (
            f"{month} {day}, {year}",
            f"{month} {day}",
            f"the {day}{ordinal_suffix(day)} of {month}",
            f"{month} {year}",
            f"{source.choice(words.WEEKDAYS)}, {month} {day}{ordinal_suffix(day)}",
            str(year),
            f"the {source.randrange(15, 22)}th century",
            f"the {source.choice(('1920', '1950', '1960', '1970', '1980', '1990'))}s",
        )
    )


def ordinal_suffix(day: int) -> str:
    """Return a day's ordinal ending."""
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def clock_time(source: random.Random) -> str:
    """Return a clock time."""
    hour, minute = source.randrange(1, 13), source.choice((0, 15, 30, 45, source.randrange(60)))
    half = source.choice((" a.m.", " p.m.", " AM", " PM", "", " o'clock"))
    if half == " o'clock":
        return f"{hour} o'clock"
    return f"{hour}:{minute:02d}{half}"


def amount(source: random.Random) -> str:
    """Return an amount of money."""
    sign = source.choice("$$$€£")
    amount = source.choice(
        (f"{source.randrange(1, 100)}", f"{source.randrange(1, 200)}.{source.randrange(100):02d}")
    )
    large = source.choice(
        (
            f"{source.randrange(1000, 900_000):,}",
            f"{source.randrange(1, 90)} million",
            "1.5 billion",
        )
    )
    return f"{sign}{source.choice((amount, amount, large))}"
