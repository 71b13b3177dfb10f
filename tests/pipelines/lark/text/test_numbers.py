from __future__ import annotations

import pytest

from pipelines.lark.text import numbers


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("0", "zero"),
        ("000", "zero"),
        ("7", "seven"),
        ("13", "thirteen"),
        ("20", "twenty"),
        ("42", "forty two"),
        ("100", "one hundred"),
        ("105", "one hundred five"),
        ("999", "nine hundred ninety nine"),
        ("1000", "one thousand"),
        ("1001", "one thousand one"),
        ("1234567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("1000000000", "one billion"),
        ("9" * 18, None),
    ],
)
def test_cardinal(digits: str, words: str | None) -> None:
    spoken = numbers.cardinal(digits)
    assert spoken == words if words else spoken.startswith("nine hundred ninety nine quadrillion")


def test_a_number_too_long_for_a_name_is_read_digit_by_digit() -> None:
    assert numbers.cardinal("1" * 20) == " , ".join(["one one one one"] * 5)


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("1", "first"),
        ("2", "second"),
        ("3", "third"),
        ("5", "fifth"),
        ("8", "eighth"),
        ("9", "ninth"),
        ("12", "twelfth"),
        ("20", "twentieth"),
        ("21", "twenty first"),
        ("100", "one hundredth"),
        ("113", "one hundred thirteenth"),
    ],
)
def test_ordinal(digits: str, words: str) -> None:
    assert numbers.ordinal(digits) == words


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("1066", "ten sixty six"),
        ("1800", "eighteen hundred"),
        ("1905", "nineteen oh five"),
        ("1999", "nineteen ninety nine"),
        ("2000", "two thousand"),
        ("2005", "two thousand five"),
        ("2024", "twenty twenty four"),
        ("0042", "forty two"),
    ],
)
def test_pairs(digits: str, words: str) -> None:
    assert numbers.pairs(digits) == words


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("2", "two"),
        ("86", "eighty six"),
        ("007", "zero zero seven"),
        ("380", "three eighty"),
        ("305", "three oh five"),
        ("500", "five hundred"),
        ("9700", "ninety seven hundred"),
        ("12345", "one two three four five"),
    ],
)
def test_code(digits: str, words: str) -> None:
    assert numbers.code(digits) == words


def test_fractions_and_decades() -> None:
    assert numbers.fraction("1", "2") == "one half"
    assert numbers.fraction("3", "4") == "three quarters"
    assert numbers.fraction("2", "3") == "two thirds"
    assert numbers.decade("1990") == "nineteen nineties"
    assert numbers.decade("1800") == "eighteen hundreds"
    assert numbers.decimal("", "5") == "point five"
    assert numbers.decimal("3", "05") == "three point zero five"
