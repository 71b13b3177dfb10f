"""Sentences around numbers, dates, money, lists and letters, for `recipes.lark.templates`."""

from __future__ import annotations

import random

from recipes.lark import words
from recipes.lark.fragments import (
    LETTERS,
    amount,
    capital,
    clause,
    clock_time,
    date_text,
    list_of,
    noun_phrase,
    number_text,
    object_phrase,
    ordinal_suffix,
    person,
    with_article,
)


def number_sentence(source: random.Random) -> str:
    """A statement with one or two numbers."""
    unit, thing, place = (
        source.choice(words.UNITS),
        noun_phrase(source),
        source.choice(words.PLACES),
    )
    return source.choice(
        (
            f"The {thing} is {number_text(source)} {unit} from {place}.",
            f"About {number_text(source)} people live in {place}, and {number_text(source)} of "
            f"them work "
            f"there.",
            f"We counted {number_text(source)} {source.choice(words.ANIMALS)} and "
            f"{number_text(source)} "
            f"{unit}.",
            f"Chapter {source.randrange(1, 60)}, page {source.randrange(1, 900)}.",
            f"The answer is {number_text(source)}.",
            f"Room {source.randrange(1, 2000)} is on floor {source.randrange(1, 40)}.",
            f"The temperature fell to {source.randrange(1, 40)} degrees, or "
            f"{source.randrange(1, 99)} percent below normal.",
            f"{source.randrange(2, 99)} plus {source.randrange(2, 99)} equals "
            f"{source.randrange(4, 200)}.",
            f"{source.randrange(2, 20)} times {source.randrange(2, 20)} is "
            f"{source.randrange(4, 400)}.",
            f"She came in {source.randrange(1, 30)}{ordinal_suffix(source.randrange(4, 10))} out "
            f"of {number_text(source)}.",
            f"Profits rose by {source.randrange(1, 90)}.{source.randrange(1, 10)}% to "
            f"{amount(source)}.",
            f"Call {source.randrange(200, 999)}-{source.randrange(100, 999)}-"
            f"{source.randrange(1000, 9999)} now.",
            f"Add {source.randrange(1, 9)} cups of {source.choice(words.FOODS)} and bake for "
            f"{source.randrange(10, 90)} minutes.",
        )
    )


def date_sentence(source: random.Random) -> str:
    """A statement with a date or a clock time."""
    return source.choice(
        (
            f"{capital(clause(source))} on {date_text(source)}.",
            f"The meeting is at {clock_time(source)} on {source.choice(words.WEEKDAYS)}.",
            f"{person(source)} was born in {date_text(source)} in {source.choice(words.PLACES)}.",
            f"The train leaves at {clock_time(source)} and arrives at {clock_time(source)}.",
            f"It opened on {date_text(source)}, and closed in {source.randrange(1900, 2030)}.",
            f"Between {source.randrange(1700, 1900)} and {source.randrange(1900, 2025)}, "
            f"{clause(source)}.",
            f"Is {date_text(source)} a good day for you?",
            f"Set an alarm for {clock_time(source)}.",
            f"By {date_text(source)}, {clause(source)}.",
        )
    )


def money_sentence(source: random.Random) -> str:
    """A statement about a price."""
    return source.choice(
        (
            f"The {noun_phrase(source)} costs {amount(source)}.",
            f"{person(source)} paid {amount(source)} for {with_article(noun_phrase(source))}.",
            f"That will be {amount(source)}, please.",
            f"The price went from {amount(source)} to {amount(source)} in "
            f"{source.randrange(2, 12)} months.",
            f"Would you sell it for {amount(source)}?",
            f"The company lost {amount(source)} last year, said {person(source)}.",
        )
    )


def list_sentence(source: random.Random) -> str:
    """A list of three to six items."""
    pool = source.choice(
        (
            words.FOODS,
            words.ANIMALS,
            words.PLACES,
            words.FIRST_NAMES,
            words.THINGS,
            words.ADJECTIVES,
        )
    )
    items = source.sample(pool, source.randrange(3, 7))
    lead = source.choice(
        (
            "We need {}.",
            "Do you have {}?",
            "They talked about {}.",
            "First, {}.",
            "{}.",
            "My favorites are {}.",
            "I saw {}!",
        )
    )
    return capital(lead.format(list_of(items, source.choice(("and", "and", "or")))))


def spelled(source: random.Random) -> str:
    """Spelled letters, codes and acronyms."""
    letters = [source.choice(LETTERS) for _ in range(source.randrange(3, 7))]
    acronym, other = source.sample(words.ACRONYMS, 2)
    return source.choice(
        (
            f"{', '.join(letters)}.",
            f"It is spelled {'-'.join(letters)}.",
            f"The {acronym} and the {other} {source.choice(words.PAST_VERBS)} "
            f"{object_phrase(source)}.",
            f"My {acronym} is {number_text(source)}.",
            f"What does {acronym} stand for?",
            f"Flight {letters[0]}{letters[1]} {source.randrange(10, 2000)} to "
            f"{source.choice(words.PLACES)} is boarding.",
            f"Use version {source.randrange(1, 20)}.{source.randrange(10)} of the {acronym} file.",
            f"The code is "
            f"{letters[0]}{source.randrange(10)}{letters[1]}{source.randrange(10, 99)}.",
            f"Vitamin {letters[0]}, plan {letters[1]}, and row {letters[2]}.",
        )
    )
