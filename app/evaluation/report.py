"""An evaluation for people, as a table, and for programs, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table

from app.evaluation.figures import ALL, Reading, Row, summarise
from app.evaluation.naturalness import Averages, Judgement, average
from app.evaluation.words_error import Step

Judgements = dict[str, Judgement]
"""By the sentences' names; empty if nothing was judged."""

_FIGURES = ("sentences", "words", "WER", "skipped", "inserted", "repeated")
_TIMES = ("first audio p50", "p95", "RTF", "underruns", "audio")
_JUDGED = ("DistillMOS", "teacher's", "similarity")


def table(title: str, readings: Sequence[Reading], judgements: Judgements) -> Table:
    """One row for each kind of sentence and one for all."""
    drawn = Table("kind", title=title, box=box.SIMPLE_HEAD)
    for heading in (*_FIGURES, *_TIMES, *(_JUDGED if judgements else ())):
        drawn.add_column(heading, justify="right")
    for row in summarise(readings):
        if row.kind == ALL:
            drawn.add_section()
        cells = [*_cells(row), *_judged_cells(_averages(row.kind, readings, judgements))]
        drawn.add_row(row.kind, *cells, style="bold" if row.kind == ALL else None)
    return drawn


def misheard(readings: Sequence[Reading]) -> list[str]:
    """A line for each sentence that was heard as another, with what is wrong in brackets."""
    return [
        f"{reading.sentence.name}: {' '.join(_marked(reading))}"
        for reading in readings
        if reading.alignment.errors
    ]


def as_json(model: str, readings: Sequence[Reading], judgements: Judgements) -> dict[str, Any]:
    """Everything that the table shows, and each sentence with its transcript."""
    rows = []
    for row in summarise(readings):
        averages = _averages(row.kind, readings, judgements)
        judged = {"judged": asdict(averages)} if averages else {}
        rows.append({**asdict(row), "word_error_rate": row.word_error_rate, **judged})
    sentences = [
        {
            **asdict(reading.sentence),
            "heard": reading.heard,
            "errors": reading.alignment.errors,
            **asdict(reading.took),
        }
        for reading in readings
    ]
    return {"model": model, "rows": rows, "sentences": sentences}


def _cells(row: Row) -> list[str]:
    return [
        str(row.sentences),
        str(row.words),
        f"{100 * row.word_error_rate:.2f} %",
        str(row.skipped),
        str(row.inserted),
        str(row.repeated),
        f"{1000 * row.first_audio_median:.0f} ms",
        f"{1000 * row.first_audio_p95:.0f} ms",
        f"{row.real_time_factor:.2f}",
        f"{row.underruns} ({row.silence:.2f} s)",
        f"{row.audio:.1f} s",
    ]


def _judged_cells(averages: Averages | None) -> list[str]:
    if averages is None:
        return []
    similarity = "" if averages.similarity is None else f"{averages.similarity:.3f}"
    return [f"{averages.naturalness:.2f}", f"{averages.reference:.2f}", similarity]


def _averages(kind: str, readings: Sequence[Reading], judgements: Judgements) -> Averages | None:
    if not judgements:
        return None
    sentences = [reading.sentence for reading in readings]
    return average([judgements[s.name] for s in sentences if kind in (ALL, s.kind)])


def _marked(reading: Reading) -> list[str]:
    marks = []
    for place in reading.alignment.places:
        if place.step is Step.KEPT:
            marks.append(place.said)
        else:
            marks.append(f"[{place.said or '-'} > {place.heard or '-'}]")
    return marks
