"""An evaluation in figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from app.evaluation.sentences import Sentence
from app.evaluation.words_error import Alignment, Step
from app.load import Utterance, percentile

ALL = "all"
"""The kind that stands for every sentence."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One sentence, spoken and listened to.

    Attributes:
        sentence: What was to be said.
        heard: The transcript.
        alignment: Of the two.
        took: How the sound came.
    """

    sentence: Sentence
    heard: str
    alignment: Alignment
    took: Utterance


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of all sentences of one kind; times in seconds.

    Attributes:
        kind: The kind.
        sentences: How many.
        words: Of the sentences.
        errors: Words wrong, missing or too many.
        skipped: Words missing.
        longest_skip: Most words that are missing in a row.
        inserted: Words too many.
        longest_insertion: Most words too many in a row.
        repeated: Those of the inserted words that say a neighbour again.
        first_audio_median: Median time to first audio.
        first_audio_p95: 95th percentile of it.
        real_time_factor: Time that the speech took, divided by its length.
        underruns: How often a simulated player ran dry.
        silence: How long it was dry.
        audio: Seconds of speech.
    """

    kind: str
    sentences: int
    words: int
    errors: int
    skipped: int
    longest_skip: int
    inserted: int
    longest_insertion: int
    repeated: int
    first_audio_median: float
    first_audio_p95: float
    real_time_factor: float
    underruns: int
    silence: float
    audio: float

    @property
    def word_error_rate(self) -> float:
        """Errors a word of the text."""
        return self.errors / self.words if self.words else 0.0


def summarise(readings: Sequence[Reading]) -> list[Row]:
    """One row for each kind, in the order of the sentences, and at last one for all."""
    kinds = list(dict.fromkeys(reading.sentence.kind for reading in readings))
    rows = [_row(kind, [r for r in readings if r.sentence.kind == kind]) for kind in kinds]
    return [*rows, _row(ALL, readings)]


def _row(kind: str, readings: Sequence[Reading]) -> Row:
    alignments = [reading.alignment for reading in readings]
    took = [reading.took for reading in readings]
    firsts = [utterance.first_audio for utterance in took]
    audio = sum(utterance.audio for utterance in took)
    return Row(
        kind=kind,
        sentences=len(readings),
        words=sum(alignment.words for alignment in alignments),
        errors=sum(alignment.errors for alignment in alignments),
        skipped=sum(alignment.deleted for alignment in alignments),
        longest_skip=max(alignment.longest(Step.DELETED) for alignment in alignments),
        inserted=sum(alignment.inserted for alignment in alignments),
        longest_insertion=max(alignment.longest(Step.INSERTED) for alignment in alignments),
        repeated=sum(alignment.repeated for alignment in alignments),
        first_audio_median=statistics.median(firsts),
        first_audio_p95=percentile(firsts, 0.95),
        real_time_factor=sum(utterance.total for utterance in took) / audio if audio else 0.0,
        underruns=sum(utterance.underruns for utterance in took),
        silence=sum(utterance.silence for utterance in took),
        audio=audio,
    )
