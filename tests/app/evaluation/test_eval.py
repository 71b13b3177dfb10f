"""Evaluating a server that hums, with a listener that knows what it ought to have heard."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Generator, Iterator
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner, Result

from app.audio.pcm import FloatSamples
from app.cli import cli
from app.evaluation.figures import ALL, Reading, summarise
from app.evaluation.naturalness import Judgement, JudgesError
from app.evaluation.report import as_json, misheard, table
from app.evaluation.run import readings
from app.evaluation.sentences import Sentence
from app.evaluation.speaking import connect
from app.evaluation.transcriber import Transcriber
from app.evaluation.words_error import align, normalised
from app.load import Utterance
from tests.app.serving import serving

SENTENCES = [
    Sentence("one", "news", "The ferry was late again."),
    Sentence("two", "news", "Nobody minded."),
    Sentence("three", "short", "Yes."),
]


@pytest.fixture(scope="module")
def humming() -> Generator[str]:
    with serving() as running:
        yield running.base_url


class Listener:
    """Hears one transcript after the other, whatever is said."""

    def __init__(self, *transcripts: str) -> None:
        self._transcripts: Iterator[str] = iter(transcripts)

    def __call__(self, samples: FloatSamples, rate: int) -> str:
        assert rate == 24_000
        assert abs(samples).max() > 0.01
        return next(self._transcripts)


def _reading(sentence: Sentence, heard: str, first_audio: float = 0.1) -> Reading:
    alignment = align(normalised(sentence.text), normalised(heard))
    return Reading(sentence, heard, alignment, Utterance(first_audio, 0.5, 2.0, 1, 0.25))


def _printed(drawn: Table) -> str:
    page = io.StringIO()
    Console(file=page, width=160).print(drawn)
    return page.getvalue()


def test_sentences_are_spoken_heard_and_kept(humming: str, tmp_path: Path) -> None:
    listener = Listener("The ferry was again.", "Nobody minded it.", "Yes.")
    with connect(humming) as client:
        found = list(readings(client, SENTENCES, "alloy", listener, tmp_path))
    assert [reading.alignment.deleted for reading in found] == [1, 0, 0]
    assert [reading.alignment.inserted for reading in found] == [0, 1, 0]
    for reading in found:
        assert 0 < reading.took.first_audio <= reading.took.total
        with wave.open(str(tmp_path / f"{reading.sentence.name}.wav"), "rb") as file:
            assert file.getframerate() == 24_000
            assert file.getnframes() / 24_000 == pytest.approx(reading.took.audio)


def test_a_server_that_refuses_ends_the_evaluation(humming: str) -> None:
    with connect(humming) as client, pytest.raises(httpx.HTTPStatusError):
        list(readings(client, SENTENCES, "nobody", Listener()))


def test_figures_by_kind_and_for_all() -> None:
    news, short, whole = summarise(
        [
            _reading(SENTENCES[0], "The ferry again.", 0.1),
            _reading(SENTENCES[1], "Nobody minded it at all.", 0.2),
            _reading(SENTENCES[2], "Yes yes", 0.9),
        ]
    )
    assert (news.kind, news.sentences, news.words) == ("news", 2, 7)
    assert (short.kind, short.repeated, short.word_error_rate) == ("short", 1, 1.0)
    assert (whole.kind, whole.words, whole.errors) == (ALL, 8, 6)
    assert (whole.skipped, whole.longest_skip) == (2, 2)
    assert (whole.inserted, whole.longest_insertion, whole.repeated) == (4, 3, 1)
    assert whole.word_error_rate == 0.75
    assert (whole.first_audio_median, whole.first_audio_p95) == (0.2, 0.9)
    assert whole.real_time_factor == 0.25
    assert (whole.underruns, whole.silence, whole.audio) == (3, 0.75, 6.0)


def test_the_table_and_the_json_say_the_same() -> None:
    found = [_reading(SENTENCES[0], "The fairy was late again"), _reading(SENTENCES[2], "Yes")]
    judgements = {"one": Judgement(4.5, 4.4, 0.9), "three": Judgement(4.1, 4.2, None)}
    text = _printed(table("lark", found, judgements))
    for figure in ("16.67 %", "100 ms", "0.25", "4.30", "0.900", "DistillMOS"):
        assert figure in text
    assert misheard(found) == ["one: the [ferry > fairy] was late again"]
    whole = as_json("lark", found, judgements)["rows"][-1]
    assert whole["word_error_rate"] == pytest.approx(1 / 6)
    assert whole["judged"]["naturalness"] == pytest.approx(4.3)
    assert whole["judged"]["similarity"] == 0.9
    assert "DistillMOS" not in _printed(table("lark", found, {}))


def _evaluate(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, ["eval", *arguments], env=environment)


@pytest.fixture
def one_sentence(tmp_path: Path) -> str:
    path = tmp_path / "sentences.tsv"
    path.write_text("id\tkind\ttext\none\tshort\tYes.\n", encoding="utf-8")
    return str(path)


def test_the_command_prints_a_table_and_what_was_misheard(humming: str, one_sentence: str) -> None:
    with patch.object(Transcriber, "installed", lambda _folder: Listener("Yet.")):
        done = _evaluate("--url", humming, "--sentences", one_sentence)
    assert done.exit_code == 0, done.output
    assert "100.00 %" in done.output
    assert "one: [yes > yet]" in done.output


def test_judges_that_fail_leave_the_other_figures(humming: str, one_sentence: str) -> None:
    fails = patch("app.commands.eval.judge", side_effect=JudgesError("The judges are out."))
    with fails, patch.object(Transcriber, "installed", lambda _folder: Listener("Yes.")):
        done = _evaluate("--url", humming, "--sentences", one_sentence, "--naturalness")
    assert done.exit_code == 1
    assert "0.00 %" in done.output
    assert "The judges are out." in done.output


def test_the_command_prints_json(humming: str, one_sentence: str) -> None:
    with patch.object(Transcriber, "installed", lambda _folder: Listener("Yes.")):
        done = _evaluate("--url", humming, "--sentences", one_sentence, "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["sentences"][0]["heard"] == "Yes."
    assert printed["rows"][-1]["errors"] == 0


def test_without_the_model_the_command_says_how_to_get_it(tmp_path: Path) -> None:
    done = _evaluate(ANTIPHON_CACHE_FOLDER=str(tmp_path))
    assert done.exit_code == 1
    assert "antiphon models fetch whisper-base" in done.output


def test_without_a_server_the_command_says_so() -> None:
    with patch.object(Transcriber, "installed", Listener):
        done = _evaluate("--url", "http://127.0.0.1:9")
    assert done.exit_code == 1
    assert "The server at http://127.0.0.1:9 did not answer" in done.output


def test_without_sentences_the_command_says_so(tmp_path: Path) -> None:
    done = _evaluate("--sentences", str(tmp_path / "none.tsv"))
    assert done.exit_code == 1
    assert "Cannot read the sentences" in done.output
