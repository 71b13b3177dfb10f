# ruff: noqa: RUF001 -- texts in many scripts
from __future__ import annotations

import pytest

from engine import TextReport
from pipelines.lark.text import inspect_text
from pipelines.lark.text.characters import clean, fold, latin


@pytest.mark.parametrize(
    ("text", "report"),
    [
        ("Hello", TextReport(True, ())),
        ("5", TextReport(True, ())),
        ("é", TextReport(True, ())),
        ("π", TextReport(True, ())),
        ("&", TextReport(True, ())),
        ("½", TextReport(True, ())),
        ("", TextReport(False, ())),
        (" \n\t", TextReport(False, ())),
        ("...!?", TextReport(False, ())),
        ("*** --- ___", TextReport(False, ())),
        ("<br/>", TextReport(False, ())),
        ("```python\n```", TextReport(False, ())),
        ("![](http://x.y)", TextReport(False, ())),
        ("\u200b\ufeff\x00", TextReport(False, ())),
        ("🎉👍🏽🎉", TextReport(False, ("🎉", "👍"))),
        ("你好，world", TextReport(True, ("你", "好"))),
        ("שלום", TextReport(False, ("ש", "ל", "ו", "ם"))),
        ("ok \ud83d", TextReport(True, ("\ufffd",))),
        ("&#128512; ok", TextReport(True, ("😀",))),
    ],
)
def test_report(text: str, report: TextReport) -> None:
    assert inspect_text(text) == report


@pytest.mark.parametrize(
    ("character", "folded"),
    [
        ("a", "a"),
        ("’", "'"),
        ("。", "."),
        ("ﬁ", "fi"),
        ("３", "3"),
        ("٣", "3"),
        ("²", "^2"),
        ("ß", "ss"),
        ("é", "é"),
        ("Ａ", "A"),
        ("\u00a0", " "),
        ("\u200b", ""),
        ("\x07", ""),
        ("၊", " "),
        ("你", None),
        ("ж", None),
        ("😀", None),
        ("\ud800", None),
    ],
)
def test_fold(character: str, folded: str | None) -> None:
    assert fold(character) == folded


@pytest.mark.parametrize(
    ("letter", "plain"),
    [("ø", "o"), ("Ł", "L"), ("æ", "ae"), ("þ", "th"), ("ŋ", "ng"), ("ế", "e"), ("ж", None)],
)
def test_latin(letter: str, plain: str | None) -> None:
    assert latin(letter) == plain


def test_clean_keeps_track_of_places() -> None:
    text, starts, ends = clean("x&amp;e\u0301ﬁ", 10)
    assert text == "x&éfi"
    assert starts == [10, 11, 16, 18, 18]
    assert ends == [11, 16, 18, 19, 19]
