"""Counting word errors: spellings that must not count, and errors that must."""

from __future__ import annotations

import pytest

from app.evaluation.words_error import Step, align, normalised, number_words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "zero"),
        (17, "seventeen"),
        (40, "forty"),
        (406, "four hundred six"),
        (36_000, "thirty six thousand"),
        (1_247, "one thousand two hundred forty seven"),
        (2_000_000_001, "two billion one"),
    ],
)
def test_numbers_in_words(value: int, words: str) -> None:
    assert number_words(value) == words


@pytest.mark.parametrize(
    ("written", "heard"),
    [
        ("Four hundred and six.", "406"),
        ("Mr. Okafor", "Mister Okafor"),
        ("at 6:45 p.m.", "at 6.45 PM"),
        ("$415,000", "415,000 dollars"),
        ("$1.7 billion", "1.7 billion dollars"),
        ("$12.50 each", "12 dollars and 50 cents each"),
        ("60% of it", "sixty percent of it"),
        ("October 24, 1648", "October 24 1648"),
        ("the 7th stop", "the seventh stop"),
        ("the 29th of February", "the twenty-ninth of February"),
        ("in 1911", "in nineteen eleven"),
        ("ice-cream, please", "ice cream please"),
        ("the NASA", "the N.A.S.A."),
        ("the dockworkers", "the dock workers"),
        ("January 1, 2021", "January 1st, 2021"),
        ("18.5 kilograms", "18.5kg"),
        ("in her thirties", "in her 30s"),
        ("3 to 2", "3-2"),
    ],
)
def test_two_spellings_of_one_reading_are_no_error(written: str, heard: str) -> None:
    assert align(normalised(written), normalised(heard)).errors == 0


def test_errors_are_counted_by_kind() -> None:
    found = align(list("abcd"), list("axcde"))
    assert (found.words, found.substituted, found.deleted, found.inserted) == (4, 1, 0, 1)
    assert align(list("abc"), list("ac")).deleted == 1
    assert align([], ["a"]).errors == 1


def test_skipped_and_repeated_words_are_found_where_they_are() -> None:
    text = normalised("the old clock struck twelve and everybody went home")
    skipped = align(text, normalised("the old clock and everybody went home"))
    assert (skipped.deleted, skipped.longest(Step.DELETED)) == (2, 2)
    assert [place.said for place in skipped.places if place.step is Step.DELETED] == text[3:5]
    repeated = align(
        text, normalised("the old old clock struck twelve and everybody went went home")
    )
    assert (repeated.inserted, repeated.repeated, repeated.longest(Step.INSERTED)) == (2, 2, 1)


def test_a_word_that_is_only_added_is_no_repetition() -> None:
    found = align(normalised("we went home"), normalised("and so we went home"))
    assert (found.inserted, found.repeated, found.longest(Step.INSERTED)) == (2, 0, 2)


def test_nothing_said_and_nothing_heard_is_no_error() -> None:
    assert align([], []).errors == 0
    assert align([], []).longest(Step.DELETED) == 0
