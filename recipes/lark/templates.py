"""Deterministic generator of training sentences that chat does not cover.

Numbers, dates, money, clock times, names, places, lists, questions, one-word answers, spelled letters, acronyms,
exclamations, news-like prose, long sentences and rare words: each kind is one small function from a seeded random
source to one text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from recipes.lark import words

Template = Callable[[random.Random], str]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list_of(items: Sequence[str], conjunction: str = "and") -> str:
    return f"{', '.join(items[:-1])}, {conjunction} {items[-1]}"


def _name(source: random.Random) -> str:
    first, last = source.choice(words.FIRST_NAMES), source.choice(words.LAST_NAMES)
    return source.choice(
        (
            f"{first} {last}",
            first,
            f"{source.choice(words.TITLES)} {last}",
            f"{first} {source.choice(_LETTERS)}. {last}",
        )
    )


def _noun(source: random.Random) -> str:
    noun = source.choice(words.THINGS)
    if source.random() < 0.6:
        noun = f"{source.choice(words.ADJECTIVES)} {noun}"
    return noun


def _article(noun: str) -> str:
    return (
        f"an {noun}" if noun[0] in "aeiou" and not noun.startswith(("uni", "use")) else f"a {noun}"
    )


def _object(source: random.Random) -> str:
    noun = _noun(source)
    owner = source.choice(("the", "the", "my", "your", "our", "their", "this", "that", "every"))
    return _article(noun) if source.random() < 0.25 else f"{owner} {noun}"


def _subject(source: random.Random) -> str:
    return source.choice(words.PEOPLE) if source.random() < 0.6 else _name(source)


def _clause(source: random.Random) -> str:
    parts = [_subject(source), source.choice(words.PAST_VERBS), _object(source)]
    if source.random() < 0.2:
        parts.insert(1, source.choice(words.ADVERBS))
    if source.random() < 0.4:
        parts.append(source.choice(words.WHERE))
    if source.random() < 0.35:
        parts.append(source.choice(words.TIMES))
    return " ".join(parts)


def _number(source: random.Random) -> str:
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
        return f"{source.randrange(2, 900)} {source.choice(('million', 'billion', 'thousand', 'hundred'))}"
    return str(value)


def _date(source: random.Random) -> str:
    month, day = source.choice(words.MONTHS), source.randrange(1, 29)
    year = source.choice((source.randrange(1500, 2000), source.randrange(1900, 2035)))
    return source.choice(
        (
            f"{month} {day}, {year}",
            f"{month} {day}",
            f"the {day}{_ordinal_suffix(day)} of {month}",
            f"{month} {year}",
            f"{source.choice(words.WEEKDAYS)}, {month} {day}{_ordinal_suffix(day)}",
            str(year),
            f"the {source.randrange(15, 22)}th century",
            f"the {source.choice(('1920', '1950', '1960', '1970', '1980', '1990'))}s",
        )
    )


def _ordinal_suffix(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _clock(source: random.Random) -> str:
    hour, minute = source.randrange(1, 13), source.choice((0, 15, 30, 45, source.randrange(60)))
    half = source.choice((" a.m.", " p.m.", " AM", " PM", "", " o'clock"))
    if half == " o'clock":
        return f"{hour} o'clock"
    return f"{hour}:{minute:02d}{half}"


def _money(source: random.Random) -> str:
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


def number_sentence(source: random.Random) -> str:
    """A statement with one or two numbers."""
    unit, thing, place = source.choice(words.UNITS), _noun(source), source.choice(words.PLACES)
    return source.choice(
        (
            f"The {thing} is {_number(source)} {unit} from {place}.",
            f"About {_number(source)} people live in {place}, and {_number(source)} of them work there.",
            f"We counted {_number(source)} {source.choice(words.ANIMALS)} and {_number(source)} {unit}.",
            f"Chapter {source.randrange(1, 60)}, page {source.randrange(1, 900)}.",
            f"The answer is {_number(source)}.",
            f"Room {source.randrange(1, 2000)} is on floor {source.randrange(1, 40)}.",
            f"The temperature fell to {source.randrange(1, 40)} degrees, or {source.randrange(1, 99)} percent below normal.",
            f"{source.randrange(2, 99)} plus {source.randrange(2, 99)} equals {source.randrange(4, 200)}.",
            f"{source.randrange(2, 20)} times {source.randrange(2, 20)} is {source.randrange(4, 400)}.",
            f"She came in {source.randrange(1, 30)}{_ordinal_suffix(source.randrange(4, 10))} out of {_number(source)}.",
            f"Profits rose by {source.randrange(1, 90)}.{source.randrange(1, 10)}% to {_money(source)}.",
            f"Call {source.randrange(200, 999)}-{source.randrange(100, 999)}-{source.randrange(1000, 9999)} now.",
            f"Add {source.randrange(1, 9)} cups of {source.choice(words.FOODS)} and bake for {source.randrange(10, 90)} minutes.",
        )
    )


def date_sentence(source: random.Random) -> str:
    """A statement with a date or a clock time."""
    return source.choice(
        (
            f"{_capital(_clause(source))} on {_date(source)}.",
            f"The meeting is at {_clock(source)} on {source.choice(words.WEEKDAYS)}.",
            f"{_name(source)} was born in {_date(source)} in {source.choice(words.PLACES)}.",
            f"The train leaves at {_clock(source)} and arrives at {_clock(source)}.",
            f"It opened on {_date(source)}, and closed in {source.randrange(1900, 2030)}.",
            f"Between {source.randrange(1700, 1900)} and {source.randrange(1900, 2025)}, {_clause(source)}.",
            f"Is {_date(source)} a good day for you?",
            f"Set an alarm for {_clock(source)}.",
            f"By {_date(source)}, {_clause(source)}.",
        )
    )


def money_sentence(source: random.Random) -> str:
    """A statement about a price."""
    return source.choice(
        (
            f"The {_noun(source)} costs {_money(source)}.",
            f"{_name(source)} paid {_money(source)} for {_article(_noun(source))}.",
            f"That will be {_money(source)}, please.",
            f"The price went from {_money(source)} to {_money(source)} in {source.randrange(2, 12)} months.",
            f"Would you sell it for {_money(source)}?",
            f"The company lost {_money(source)} last year, said {_name(source)}.",
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
    return _capital(lead.format(_list_of(items, source.choice(("and", "and", "or")))))


def question(source: random.Random) -> str:
    """A question of one of the usual shapes."""
    verb, thing = source.choice(words.BASE_VERBS), _object(source)
    return source.choice(
        (
            f"Did {_subject(source)} {verb} {thing}?",
            f"Where did {_subject(source)} {verb} {thing}?",
            f"Why would anyone {verb} {thing}?",
            f"Can you {verb} {thing} {source.choice(words.TIMES)}?",
            f"Could you tell me how to {verb} {thing}?",
            f"How many {source.choice(words.UNITS)} are there in {source.choice(words.PLACES)}?",
            f"Have you ever been to {source.choice(words.PLACES)}?",
            f"Who wanted to {verb} {thing}?",
            f"What is the {source.choice(words.ADJECTIVES)} {source.choice(words.THINGS)} for?",
            f"Is it {source.choice(words.ADJECTIVES)} or {source.choice(words.ADJECTIVES)}?",
            f"Do you think {_name(source)} will {verb} {thing}?",
            f"Shall we {verb} it, or should we wait?",
            f"You didn't {verb} {thing}, did you?",
        )
    )


def exclamation(source: random.Random) -> str:
    """A short emphatic sentence, sometimes shouted."""
    text = source.choice(
        (
            f"{source.choice(words.INTERJECTIONS)}, what {_article(_noun(source))}!",
            f"{source.choice(words.INTERJECTIONS)}! {_capital(_clause(source))}!",
            f"Don't {source.choice(words.BASE_VERBS)} {_object(source)}!",
            f"How {source.choice(words.ADJECTIVES)}!",
            f"{source.choice(words.INTERJECTIONS)}, {source.choice(words.FIRST_NAMES)}!",
            f"That is so {source.choice(words.ADJECTIVES)}!",
        )
    )
    return text.upper() if source.random() < 0.06 else text


def answer(source: random.Random) -> str:
    """A one-word or few-word answer, a bare number, a name or a place."""
    style = source.random()
    if style < 0.45:
        return source.choice(words.SHORT_ANSWERS)
    if style < 0.65:
        return f"{source.choice((str(source.randrange(0, 100)), _number(source)))}{source.choice(('.', '', '!', '?'))}"
    if style < 0.8:
        return (
            f"{source.choice((_name(source), source.choice(words.PLACES)))}{source.choice('..?!')}"
        )
    if style < 0.9:
        return f"{_capital(_date(source))}."
    return f"{_capital(source.choice(words.ADJECTIVES))}{source.choice('.!?')}"


def spelled(source: random.Random) -> str:
    """Spelled letters, codes and acronyms."""
    letters = [source.choice(_LETTERS) for _ in range(source.randrange(3, 7))]
    acronym, other = source.sample(words.ACRONYMS, 2)
    return source.choice(
        (
            f"{', '.join(letters)}.",
            f"It is spelled {'-'.join(letters)}.",
            f"The {acronym} and the {other} {source.choice(words.PAST_VERBS)} {_object(source)}.",
            f"My {acronym} is {_number(source)}.",
            f"What does {acronym} stand for?",
            f"Flight {letters[0]}{letters[1]} {source.randrange(10, 2000)} to {source.choice(words.PLACES)} is boarding.",
            f"Use version {source.randrange(1, 20)}.{source.randrange(10)} of the {acronym} file.",
            f"The code is {letters[0]}{source.randrange(10)}{letters[1]}{source.randrange(10, 99)}.",
            f"Vitamin {letters[0]}, plan {letters[1]}, and row {letters[2]}.",
        )
    )


def news(source: random.Random) -> str:
    """News-like prose."""
    place, name = source.choice(words.PLACES), _name(source)
    return source.choice(
        (
            f"{_capital(_clause(source))}, according to {name}, who spoke to reporters in {place} {source.choice(words.TIMES)}.",
            f"Officials in {place} said that {_clause(source)}, and that {_clause(source)}.",
            f"In {place}, {_clause(source)}, despite warnings from {_subject(source)}.",
            f'"{_capital(_clause(source))}," said {name}. "We must {source.choice(words.BASE_VERBS)} it."',
            f"{name}, {source.randrange(18, 95)}, of {place}, {source.choice(words.PAST_VERBS)} {_object(source)}; "
            f"{_subject(source)} {source.choice(words.PAST_VERBS)} the rest.",
            f"Nearly {_number(source)} people in {place} had no power after {_clause(source)}.",
            f"The {source.choice(words.ADJECTIVES)} {source.choice(words.THINGS)} will {source.choice(words.BASE_VERBS)} "
            f"{_object(source)} by {_date(source)}, the {source.choice(words.ACRONYMS)} announced.",
        )
    )


def long_sentence(source: random.Random) -> str:
    """Two to four clauses joined into one sentence."""
    text = _capital(_clause(source))
    for _ in range(source.randrange(1, 4)):
        joint = source.choice(
            (
                ", and ",
                ", but ",
                "; ",
                ", because ",
                " while ",
                ", so ",
                ", although ",
                " — ",
                ", which meant that ",
                ", and then ",
                ": ",
                " before ",
            )
        )
        text += joint + _clause(source)
    if source.random() < 0.15:
        text += f" ({_clause(source)})"
    return text + source.choice(("...", ".", ".", ".", ".", ".", "?", "!"))


def statement(source: random.Random) -> str:
    """One plain clause."""
    return f"{_capital(_clause(source))}."


TEMPLATES: dict[Template, int] = {
    number_sentence: 12,
    date_sentence: 10,
    money_sentence: 5,
    list_sentence: 8,
    question: 12,
    exclamation: 6,
    answer: 9,
    spelled: 6,
    news: 12,
    long_sentence: 12,
    statement: 8,
}


def rare_words(source: random.Random, lexicon: Sequence[str]) -> str:
    """A sentence around words drawn from a pronunciation lexicon."""
    picked = source.sample(lexicon, 4)
    return source.choice(
        (
            f"{_capital(picked[0])}, {picked[1]}, {picked[2]}, and {picked[3]}.",
            f"The {picked[0]} {picked[1]} was {picked[2]}.",
            f"What is {picked[0]}, and how does {picked[1]} {picked[2]} {picked[3]}?",
            f"They called it the {picked[0]} of {picked[1]}.",
            f"{_capital(picked[0])} {picked[1]} {picked[2]} {picked[3]}!",
        )
    )


def generate(
    count: int, seed: int, lexicon: Sequence[str], rare_share: float = 0.15
) -> Iterator[str]:
    """Yield `count` distinct texts, the same for the same seed and lexicon."""
    source = random.Random(seed)
    templates, weights = list(TEMPLATES), list(TEMPLATES.values())
    seen: set[str] = set()
    while len(seen) < count:
        if lexicon and source.random() < rare_share:
            text = rare_words(source, lexicon)
        else:
            text = source.choices(templates, weights)[0](source)
        # Short answers repeat by design; the cap keeps the loop finite when the pool runs dry.
        if text not in seen:
            seen.add(text)
            yield text
