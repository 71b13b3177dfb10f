"""The sentences that an evaluation speaks."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

PACKAGED = Path(__file__).with_name("sentences.tsv")
"""Twenty sentences of all kinds, which every installation has."""

WHOLE = PACKAGED.parents[2] / "recipes" / "lark" / "evaluation" / "sentences.tsv"
"""Two hundred sentences, which a source checkout has."""


class SentencesError(Exception):
    """A file of sentences is missing or wrong; the message says how."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Something to say.

    Attributes:
        name: Stands for it in files and reports.
        kind: What sort of text it is, such as `numbers`.
        text: The words.
    """

    name: str
    kind: str
    text: str


def default_file() -> Path:
    """The largest set of sentences that is here."""
    return WHOLE if WHOLE.is_file() else PACKAGED


def read_sentences(path: Path, limit: int = 0) -> list[Sentence]:
    """Reads tab-separated columns `id`, `kind` and `text` under a line of these names.

    Args:
        path: The file; further columns of it are ignored.
        limit: How many sentences at most, evenly from the whole file; 0 takes all.

    Raises:
        SentencesError: The file cannot be read, lacks a column or holds no sentence.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError) as error:
        raise SentencesError(f"Cannot read the sentences: {error}.") from error
    sentences = []
    for number, row in enumerate(rows, 2):
        name, kind, text = (row.get(key) for key in ("id", "kind", "text"))
        if not (name and kind and text):
            raise SentencesError(f"{path}, line {number}: it needs an id, a kind and a text.")
        sentences.append(Sentence(name, kind, text))
    if not sentences:
        raise SentencesError(f"{path} holds no sentences.")
    if not 0 < limit < len(sentences):
        return sentences
    return [sentences[index * len(sentences) // limit] for index in range(limit)]
