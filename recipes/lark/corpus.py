"""The training texts: chat, templates and prose, with the evaluation sentences left out."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from recipes.lark import prose, templates

EVALUATION = Path(__file__).parent / "evaluation" / "sentences.tsv"

_ALLOWED = re.compile(r"^[A-Za-z0-9 ,.;:!?'\"()$%&-]+$")
_REPEATED = re.compile(r"([A-Za-z!?.])\1{3,}")
_LINK = re.compile(r"https?|www|\.com|@")
_KEY = re.compile(r"[^a-z0-9 ]")


@dataclass(frozen=True)
class Sentence:
    """One text with the source it came from."""

    source: str
    text: str


def key(text: str) -> str:
    """Reduce a text to the form under which two sentences count as the same."""
    return " ".join(_KEY.sub("", text.lower()).split())


def chitchat() -> Iterator[str]:
    """Yield cleaned messages of `chitchat-dataset` (MIT)."""
    path = resources.files("chitchat_dataset").joinpath("dataset.json")
    for conversation in json.loads(path.read_text(encoding="utf-8")).values():
        for turn in conversation["messages"]:
            for message in turn:
                text = clean(message["text"])
                if text:
                    yield text


def chatterbot() -> Iterator[str]:
    """Yield the English sentences of `chatterbot-corpus` (BSD)."""
    folder = resources.files("chatterbot_corpus").joinpath("data", "english")
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        for line in file.read_text(encoding="utf-8").splitlines():
            text = clean(line.strip().lstrip("- ").strip())
            if text and not text.startswith("categories"):
                yield text


def clean(text: str, longest: int = 220) -> str | None:
    """Return a message fit for speech, or None: no links, odd characters, drawn-out letters."""
    text = " ".join(
        text.replace("\u2019", "'").replace("\u201c", '"').replace("\u201d", '"').split()
    )
    if not 2 <= len(text) <= longest or not _ALLOWED.match(text):
        return None
    if (
        _REPEATED.search(text)
        or _LINK.search(text)
        or sum(c.isalpha() for c in text) < 0.6 * len(text)
    ):
        return None
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else text + "."


def lexicon_words() -> list[str]:
    """Return the plain lower-case words of the teacher's pronunciation lexicon (Apache-2.0)."""
    path = resources.files("hibari").joinpath("assets", "lexicon_us_gold.json.gz")
    entries = json.loads(gzip.decompress(path.read_bytes()))
    return sorted(
        word
        for word in entries
        if word.isascii() and word.isalpha() and word.islower() and len(word) > 2
    )


def evaluation_keys(path: Path = EVALUATION) -> set[str]:
    """Return the keys of the sentences that must never be trained on."""
    if not path.exists():
        return set()
    with path.open(encoding="utf-8", newline="") as file:
        return {
            key(row["text"]) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        }


def build(counts: dict[str, int], prose_folder: Path, seed: int = 3) -> list[Sentence]:
    """Return `counts` sentences of each source in random order, each text once.

    Args:
        counts: how many of "chitchat", "chatterbot", "templates" and "prose".
        prose_folder: where the prose package was unpacked; without it, that source is empty.
        seed: of the choice and the order.
    """
    source = random.Random(seed)
    taken = evaluation_keys()
    database = prose.find_database(prose_folder)
    pools: dict[str, Iterable[str]] = {
        "chitchat": _shuffled(chitchat(), source),
        "chatterbot": _shuffled(chatterbot(), source),
        "prose": _shuffled(prose.sentences(database), source) if database else (),
        "templates": templates.generate(2 * counts.get("templates", 0), seed, lexicon_words()),
    }
    chosen: list[Sentence] = []
    for name, pool in pools.items():
        wanted = counts.get(name, 0)
        for text in pool:
            if wanted == 0:
                break
            if key(text) not in taken:
                taken.add(key(text))
                chosen.append(Sentence(name, text))
                wanted -= 1
    source.shuffle(chosen)
    return chosen


def _shuffled(texts: Iterable[str], source: random.Random) -> list[str]:
    found = sorted(set(texts))
    source.shuffle(found)
    return found
