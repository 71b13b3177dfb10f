"""Deterministic generator of training sentences that chat does not cover.

Numbers, dates, money, clock times, names, places, lists, questions, one-word answers, spelled
letters, acronyms, exclamations, news-like prose, long sentences and rare words: each kind is one
small function from a seeded random source to one text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from recipes.lark import words
from recipes.lark.figures import (
    date_sentence,
    list_sentence,
    money_sentence,
    number_sentence,
    spelled,
)
from recipes.lark.fragments import (
    capital,
    clause,
    date_text,
    noun_phrase,
    number_text,
    object_phrase,
    person,
    subject,
    with_article,
)

Template = Callable[[random.Random], str]


def question(source: random.Random) -> str:
    """A question of one of the usual shapes."""
    verb, thing = source.choice(words.BASE_VERBS), object_phrase(source)
    return source.choice(
        (
            f"Did {subject(source)} {verb} {thing}?",
            f"Where did {subject(source)} {verb} {thing}?",
            f"Why would anyone {verb} {thing}?",
            f"Can you {verb} {thing} {source.choice(words.TIMES)}?",
            f"Could you tell me how to {verb} {thing}?",
            f"How many {source.choice(words.UNITS)} are there in {source.choice(words.PLACES)}?",
            f"Have you ever been to {source.choice(words.PLACES)}?",
            f"Who wanted to {verb} {thing}?",
            f"What is the {source.choice(words.ADJECTIVES)} {source.choice(words.THINGS)} for?",
            f"Is it {source.choice(words.ADJECTIVES)} or {source.choice(words.ADJECTIVES)}?",
            f"Do you think {person(source)} will {verb} {thing}?",
            f"Shall we {verb} it, or should we wait?",
            f"You didn't {verb} {thing}, did you?",
        )
    )


def exclamation(source: random.Random) -> str:
    """A short emphatic sentence, sometimes shouted."""
    text = source.choice(
        (
            f"{source.choice(words.INTERJECTIONS)}, what {with_article(noun_phrase(source))}!",
            f"{source.choice(words.INTERJECTIONS)}! {capital(clause(source))}!",
            f"Don't {source.choice(words.BASE_VERBS)} {object_phrase(source)}!",
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
        number = source.choice((str(source.randrange(0, 100)), number_text(source)))
        return f"{number}{source.choice(('.', '', '!', '?'))}"
    if style < 0.8:
        return (
            f"{source.choice((person(source), source.choice(words.PLACES)))}{source.choice('..?!')}"
        )
    if style < 0.9:
        return f"{capital(date_text(source))}."
    return f"{capital(source.choice(words.ADJECTIVES))}{source.choice('.!?')}"


def news(source: random.Random) -> str:
    """News-like prose."""
    place, name = source.choice(words.PLACES), person(source)
    return source.choice(
        (
            f"{capital(clause(source))}, according to {name}, who spoke to reporters in {place} "
            f"{source.choice(words.TIMES)}.",
            f"Officials in {place} said that {clause(source)}, and that {clause(source)}.",
            f"In {place}, {clause(source)}, despite warnings from {subject(source)}.",
            f'"{capital(clause(source))}," said {name}. '
            f'"We must {source.choice(words.BASE_VERBS)} it."',
            f"{name}, {source.randrange(18, 95)}, of {place}, {source.choice(words.PAST_VERBS)} "
            f"{object_phrase(source)}; "
            f"{subject(source)} {source.choice(words.PAST_VERBS)} the rest.",
            f"Nearly {number_text(source)} people in {place} had no power after {clause(source)}.",
            f"The {source.choice(words.ADJECTIVES)} {source.choice(words.THINGS)} will "
            f"{source.choice(words.BASE_VERBS)} "
            f"{object_phrase(source)} by {date_text(source)}, the "
            f"{source.choice(words.ACRONYMS)} announced.",
        )
    )


def long_sentence(source: random.Random) -> str:
    """Two to four clauses joined into one sentence."""
    text = capital(clause(source))
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
        text += joint + clause(source)
    if source.random() < 0.15:
        text += f" ({clause(source)})"
    return text + source.choice(("...", ".", ".", ".", ".", ".", "?", "!"))


def statement(source: random.Random) -> str:
    """One plain clause."""
    return f"{capital(clause(source))}."


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
            f"{capital(picked[0])}, {picked[1]}, {picked[2]}, and {picked[3]}.",
            f"The {picked[0]} {picked[1]} was {picked[2]}.",
            f"What is {picked[0]}, and how does {picked[1]} {picked[2]} {picked[3]}?",
            f"They called it the {picked[0]} of {picked[1]}.",
            f"{capital(picked[0])} {picked[1]} {picked[2]} {picked[3]}!",
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
        # Short answers repeat by design.
        if text not in seen:
            seen.add(text)
            yield text
