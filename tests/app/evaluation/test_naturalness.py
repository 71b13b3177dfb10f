"""The way to the judges, without their networks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from app.evaluation import naturalness
from app.evaluation.naturalness import Judgement, JudgesError, average, judge, require_judges
from app.evaluation.sentences import Sentence, read_sentences

SENTENCES = [Sentence("one", "quote", '"Well," he said.'), Sentence("two", "short", "Yes.")]


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a module `judges` is looked for."""
    monkeypatch.setattr(naturalness, "ROOT", tmp_path)
    monkeypatch.setattr(naturalness, "MODULE", "judges")
    return tmp_path / "judges.py"


def test_the_judges_come_with_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    require_judges()
    monkeypatch.setattr(naturalness, "ROOT", Path("/nonexistent"))
    with pytest.raises(JudgesError, match="source checkout"):
        require_judges()


def test_judges_get_the_sentences_and_write_what_they_find(judges: Path, tmp_path: Path) -> None:
    found = {"one": Judgement(4.5, 4.4, 0.9), "two": Judgement(4.1, 4.2, None)}
    written = {name: asdict(judged) for name, judged in found.items()}
    judges.write_text(
        "import pathlib, sys\n"
        "print('something that is no JSON')\n"
        f"pathlib.Path(sys.argv[1], 'judged.json').write_text({json.dumps(written)!r})\n",
        encoding="utf-8",
    )
    assert judge(tmp_path, SENTENCES) == found
    assert read_sentences(tmp_path / "sentences.tsv") == SENTENCES


def test_judges_that_fail_are_told(judges: Path, tmp_path: Path) -> None:
    judges.write_text("raise SystemExit(3)\n", encoding="utf-8")
    with pytest.raises(JudgesError, match=r"judges failed"):
        judge(tmp_path, SENTENCES)


def test_similarity_is_averaged_over_sounds_that_are_long_enough() -> None:
    whole = average([Judgement(4.0, 4.5, 0.8), Judgement(5.0, 4.5, None)])
    assert (whole.naturalness, whole.reference, whole.similarity) == (4.5, 4.5, 0.8)
    assert average([Judgement(4.0, 4.5, None)]).similarity is None
