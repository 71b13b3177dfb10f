"""Word error rate on texts in one spelling: numbers, titles and signs as words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = (
    *("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty"),
    "ninety",
)
_LONGEST_COMPOUND = 5
_DECADES = ("", "", *(f"{ten[:-1]}ies" for ten in _TENS[2:]))
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_SPELLINGS = {
    "mr": "mister",
    "mrs": "missus",
    "ms": "miss",
    "dr": "doctor",
    "st": "saint",
    "ok": "okay",
    "pm": "p m",
    "am": "a m",
    "km": "kilometers",
    "kg": "kilograms",
    "lbs": "pounds",
    "colour": "color",
    "neighbour": "neighbor",
    "metres": "meters",
    "litre": "liter",
    "gray": "grey",
    "oclock": "o clock",
    "alright": "all right",
    "cancelling": "canceling",
    "youve": "you have",
    "wouldve": "would have",
    "couldve": "could have",
    "gonna": "going to",
}
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:st|nd|rd|th)?")


def number_words(value: int) -> str:
    """Return a whole number in words, without 'and'."""
    for scale, name in _SCALES:
        if value >= scale:
            rest = number_words(value % scale) if value % scale else ""
            return f"{number_words(value // scale)} {name} {rest}".strip()
    if value < 20:
        return _ONES[value]
    return f"{_TENS[value // 10]} {_ONES[value % 10] if value % 10 else ''}".strip()


def _year_words(value: int) -> str:
    century, rest = divmod(value, 100)
    if 1100 <= value < 2100 and century != 20 and rest:
        low = f"oh {_ONES[rest]}" if rest < 10 else number_words(rest)
        return f"{number_words(century)} {low}"
    if value >= 2010 and value < 2100:
        return f"twenty {number_words(rest)}"
    return number_words(value)


def _spoken(match: re.Match[str]) -> str:
    text = match.group()
    digits = text.rstrip("stndrh")
    if "." in digits:
        whole, fraction = digits.split(".")
        return f"{number_words(int(whole))} point {' '.join(_ONES[int(d)] for d in fraction)}"
    value = int(digits)
    words = _year_words(value) if 1100 <= value < 2100 and len(digits) == 4 else number_words(value)
    if digits != text:
        head, _, tail = words.rpartition(" ")
        tail = _ORDINALS.get(tail, tail[:-1] + "ieth" if tail.endswith("y") else f"{tail}th")
        words = f"{head} {tail}".strip()
    return words


def normalised(text: str) -> list[str]:
    """Return the words of a text in one spelling."""
    text = re.sub(r"\b(\d)-(\d)\b", r"\1 to \2", text.lower())
    text = text.replace("\u2019", "'").replace("-", " ").replace("\u2014", " ")
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    text = re.sub(r"\$(\d[\d.]*)( (?:million|billion|thousand))?", r"\1\2 dollars", text)
    text = re.sub(r"(\d+)\.(\d\d) dollars", r"\1 dollars and \2 cents", text)
    text = re.sub(r"\b(\d\d?)\.(\d\d)(?= ?[ap]\.?m\b)", r"\1:\2", text)
    text = re.sub(r"(\d+):00", r"\1", text)
    text = re.sub(r"(\d+)[:.]0(\d)\b(?= ?[ap])", r"\1 oh \2", text)
    text = re.sub(r"(\d+):(\d\d)", r"\1 \2", text)
    text = re.sub(r"\b([ap])\.m\b\.?", r"\1 m", text).replace("%", " percent ")
    text = re.sub(r"\b([a-z])\.(?=[a-z]\b)", r"\1 ", text)
    text = re.sub(r"(\d)([ap]m|b|[ap] m|kg|km|lbs)\b", r"\1 \2", text)
    text = re.sub(rf"\b({_MONTHS}) (\d+)(?:st|nd|rd|th)\b", r"\1 \2", text)
    text = re.sub(r"\b([2-9])0s\b", lambda match: _DECADES[int(match[1])], text)
    text = _NUMBER.sub(lambda match: f" {_spoken(match)} ", text)
    words = re.sub(r"[^a-z ]", "", re.sub(r"[/,;:.!?\"()]", " ", text)).split()
    spelled = " ".join(_SPELLINGS.get(word, word) for word in words).split()
    after_hundred = zip(["", *spelled], spelled, strict=False)
    scales = ("hundred", "thousand", "dollars")
    return [word for before, word in after_hundred if not (word == "and" and before in scales)]


class Step(Enum):
    """What became of a word on the way from the text to the transcript."""

    KEPT = "kept"
    SUBSTITUTED = "substituted"
    DELETED = "deleted"
    INSERTED = "inserted"


@dataclass(frozen=True)
class Aligned:
    """One place of an alignment: a word of the text, of the transcript, or one of each."""

    step: Step
    said: str
    heard: str


@dataclass(frozen=True)
class Alignment:
    """The cheapest way from a text's words to a transcript's."""

    places: tuple[Aligned, ...]

    @property
    def words(self) -> int:
        """Words of the text."""
        return len(self.places) - self.inserted

    @property
    def substituted(self) -> int:
        """Words that were heard as others."""
        return self._count(Step.SUBSTITUTED)

    @property
    def deleted(self) -> int:
        """Words that were not heard."""
        return self._count(Step.DELETED)

    @property
    def inserted(self) -> int:
        """Words that were heard and are not in the text."""
        return self._count(Step.INSERTED)

    @property
    def errors(self) -> int:
        """All errors together."""
        return sum(place.step is not Step.KEPT for place in self.places)

    @property
    def repeated(self) -> int:
        """Inserted words that say once more what was heard just before or comes right after."""
        heard = [place for place in self.places if place.step is not Step.DELETED]
        words = ["", *(place.heard for place in heard), ""]
        return sum(
            place.step is Step.INSERTED and place.heard in (before, after)
            for place, before, after in zip(heard, words, words[2:], strict=False)
        )

    def longest(self, step: Step) -> int:
        """How many words in a row met the same fate, at most."""
        runs = groupby(self._steps)
        return max((len(list(run)) for kind, run in runs if kind is step), default=0)

    @property
    def _steps(self) -> list[Step]:
        return [place.step for place in self.places]

    def _count(self, step: Step) -> int:
        return self._steps.count(step)


def _joined(words: list[str], known: set[str]) -> list[str]:
    """Join neighbours whose compound the other side has as one word."""
    result: list[str] = []
    start = 0
    while start < len(words):
        ends = range(min(start + _LONGEST_COMPOUND, len(words)), start, -1)
        end = next((e for e in ends if "".join(words[start:e]) in known), start + 1)
        result.append("".join(words[start:end]))
        start = end
    return result


def align(reference: list[str], heard: list[str]) -> Alignment:
    """Return the cheapest alignment; word breaks alone ('dock workers') are no error."""
    reference, heard = _joined(reference, set(heard)), _joined(heard, set(reference))
    rows = [[(column, 0, Step.INSERTED) for column in range(len(heard) + 1)]]
    for index, word in enumerate(reference):
        above = rows[-1]
        row = [(index + 1, 0, Step.DELETED)]
        for column, other in enumerate(heard):
            # Of equally cheap ways, the one that takes fewer words for other words.
            cost, swaps, _ = above[column]
            same = word == other
            ways = (
                (cost, swaps, Step.KEPT) if same else (cost + 1, swaps + 1, Step.SUBSTITUTED),
                (above[column + 1][0] + 1, above[column + 1][1], Step.DELETED),
                (row[-1][0] + 1, row[-1][1], Step.INSERTED),
            )
            row.append(min(ways, key=lambda way: way[:2]))
        rows.append(row)
    return Alignment(_traced(rows, reference, heard))


def _traced(
    rows: list[list[tuple[int, int, Step]]], reference: list[str], heard: list[str]
) -> tuple[Aligned, ...]:
    """Walk the cheapest way back from its end."""
    places = []
    index, column = len(reference), len(heard)
    while index or column:
        step = rows[index][column][2]
        index -= step is not Step.INSERTED
        column -= step is not Step.DELETED
        said = "" if step is Step.INSERTED else reference[index]
        places.append(Aligned(step, said, "" if step is Step.DELETED else heard[column]))
    return tuple(reversed(places))
