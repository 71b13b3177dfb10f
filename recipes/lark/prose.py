"""English prose in the public domain for the training corpus: Jane Austen's novels.

The texts travel in the Debian package `r-cran-janeaustenr` (MIT; the novels themselves are in
the public domain):

    apt-get download r-cran-janeaustenr && dpkg-deb -x r-cran-janeaustenr_*.deb build/lark/prose

The package stores them as an R lazy-load database: zlib streams of serialised R character vectors.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_STRING_HEADER = b"\x00\x04\x00\x09"
"""Flags of one ASCII string in R's big-endian serialisation; a 32-bit byte count follows."""

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"']?\s+(?=[A-Z\"'])")
_TITLE_AT_END = re.compile(r"\b(?:Mr|Mrs|Dr|St|Esq|Hon|Rev|Capt|Col|Miss)\.$")
_CLEAN = re.compile(r"^[A-Z\"'][A-Za-z ,.;:!?'\"()-]+[.!?]['\"]?$")


def find_database(folder: Path) -> Path | None:
    """Return the lazy-load database below `folder`, or None when there is no package."""
    return next(iter(sorted(folder.rglob("janeaustenr/data/Rdata.rdb"))), None)


def read_lines(database: Path) -> Iterator[str]:
    """Yield the text lines of every novel in the database."""
    content, position = database.read_bytes(), 0
    while position < len(content):
        stream = zlib.decompressobj()
        block = stream.decompress(content[position + 4 :])
        position = len(content) - len(stream.unused_data)
        yield from _strings(block)


def _strings(block: bytes) -> Iterator[str]:
    position = block.find(_STRING_HEADER)
    while position >= 0:
        (length,) = struct.unpack_from(">i", block, position + 4)
        start = position + 8
        if 0 <= length <= len(block) - start:
            yield block[start : start + length].decode("ascii", errors="ignore")
            start += length
        position = block.find(_STRING_HEADER, start)


def sentences(database: Path, shortest: int = 20, longest: int = 260) -> Iterator[str]:
    """Yield clean sentences of `shortest` to `longest` characters, in reading order."""
    paragraph: list[str] = []
    for line in read_lines(database):
        if line.strip():
            paragraph.append(line.strip())
            continue
        yield from _split(" ".join(paragraph), shortest, longest)
        paragraph = []


def _split(paragraph: str, shortest: int, longest: int) -> Iterator[str]:
    text = paragraph.replace("_", "").replace("--", " - ").replace("  ", " ")
    pending = ""
    for part in _SENTENCE_END.split(text):
        pending = f"{pending} {part}".strip()
        if _TITLE_AT_END.search(pending):
            continue
        if (
            shortest <= len(pending) <= longest
            and _CLEAN.match(pending)
            and pending.count('"') % 2 == 0
        ):
            yield pending
        pending = ""
