"""How natural kept sounds are, and how alike their speakers: judged in a process of its own.

The judges are networks in torch, which has no place in this package or in a command's process.
They belong to the recipe of the embedded voice and come with a source checkout.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.evaluation.sentences import Sentence

ROOT = Path(__file__).parents[2]
MODULE = "recipes.lark.judge_files"
SENTENCES = "sentences.tsv"
JUDGED = "judged.json"


class JudgesError(Exception):
    """The judges are not here or failed; the message says why."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judges say of one sound.

    Attributes:
        naturalness: DistillMOS, 1 to 5.
        reference: That of the embedded voice's teacher, which says the same.
        similarity: Of the two speakers, at most 1; None for sounds too short to tell.
    """

    naturalness: float
    reference: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Averages:
    """Judgements of all sounds together; the attributes are those of `Judgement`."""

    naturalness: float
    reference: float
    similarity: float | None


def require_judges() -> None:
    """Looks for the judges before anything is spoken.

    Raises:
        JudgesError: They are not here.
    """
    if not ROOT.joinpath(*MODULE.split(".")).with_suffix(".py").is_file():
        raise JudgesError(
            "Naturalness is judged by a source checkout, not by an installed package."
        )


def judge(folder: Path, sentences: Sequence[Sentence]) -> dict[str, Judgement]:
    """Judges the sounds `<name>.wav` of a folder; what the judges print goes to standard error.

    Raises:
        JudgesError: The judges failed.
    """
    with (folder / SENTENCES).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerow(("id", "kind", "text"))
        writer.writerows((sentence.name, sentence.kind, sentence.text) for sentence in sentences)
    command = [sys.executable, "-m", MODULE, str(folder.resolve())]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode:
        raise JudgesError("The judges failed; what they said is above.")
    found = json.loads((folder / JUDGED).read_text(encoding="utf-8"))
    return {name: Judgement(**judged) for name, judged in found.items()}


def average(judgements: Sequence[Judgement]) -> Averages:
    """The means; similarity over the sounds that are long enough for it."""
    alike = [judged.similarity for judged in judgements if judged.similarity is not None]
    return Averages(
        naturalness=sum(judged.naturalness for judged in judgements) / len(judgements),
        reference=sum(judged.reference for judged in judgements) / len(judgements),
        similarity=sum(alike) / len(alike) if alike else None,
    )
