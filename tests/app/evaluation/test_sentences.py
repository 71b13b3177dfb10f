"""The files of sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.evaluation.sentences import (
    PACKAGED,
    WHOLE,
    SentencesError,
    default_file,
    read_sentences,
)


def _file(folder: Path, *lines: str) -> Path:
    path = folder / "sentences.tsv"
    path.write_text("\n".join(("id\tkind\ttext\torigin", *lines)) + "\n", encoding="utf-8")
    return path


def test_the_packaged_twenty_are_sentences_of_the_whole_set_and_of_all_its_kinds() -> None:
    packaged, whole = read_sentences(PACKAGED), read_sentences(WHOLE)
    assert len(packaged) == 20
    assert len(whole) == 200
    assert set(packaged) <= set(whole)
    assert {sentence.kind for sentence in packaged} == {sentence.kind for sentence in whole}


def test_the_whole_set_is_taken_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_file() == WHOLE
    monkeypatch.setattr("app.evaluation.sentences.WHOLE", Path("/nonexistent"))
    assert default_file() == PACKAGED


def test_a_limit_takes_sentences_from_the_whole_file(tmp_path: Path) -> None:
    path = _file(tmp_path, *(f"{number}\tcount\ttext {number}" for number in range(10)))
    assert [sentence.name for sentence in read_sentences(path, 4)] == ["0", "2", "5", "7"]
    assert len(read_sentences(path, 99)) == 10
    assert len(read_sentences(path)) == 10


def test_quotes_are_part_of_a_text(tmp_path: Path) -> None:
    path = _file(tmp_path, 'one\tquote\t"Well," he said.\town work')
    assert read_sentences(path)[0].text == '"Well," he said.'


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = _file(tmp_path, "one\tkind\ttext", "two\tkind")
    with pytest.raises(SentencesError, match="line 3"):
        read_sentences(path)


def test_files_without_sentences_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SentencesError, match="holds no sentences"):
        read_sentences(_file(tmp_path))
    with pytest.raises(SentencesError, match="Cannot read"):
        read_sentences(tmp_path / "missing.tsv")
