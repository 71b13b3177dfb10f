# ruff: noqa: RUF001 -- phonemes
"""From words to phonemes: context, unknown words, framing, marks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import hibari.tts
import pytest

from pipelines.lark.text import Phonemizer

PLAIN = (
    "The quick brown fox jumps over the lazy dog.",
    "I have a question for you, and I want to read the answer.",
    "I used to live in an old house near the river.",
    "Have you read the book that I gave you?",
    "We don't know what they'll say about it, but it's fine.",
    "She is going to the end of the road; the others are in.",
    "What a wonderful day to record a new record!",
    "Close the door, it is close to the live wire.",
)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_sentences_are_read_as_the_library_reads_them(
    phonemizer: Phonemizer, phonemes, text: str
) -> None:
    # The library's own framing, without its synthesiser.
    (expected,) = hibari.tts.Hibari.phonemize(_Library(phonemizer), text)
    assert phonemes(text) == f"|{expected}|"


class _Library:
    def __init__(self, phonemizer: Phonemizer) -> None:
        self.g2p = phonemizer._g2p

    split_sentences = staticmethod(hibari.tts.Hibari.split_sentences)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Yes.", "|jˈɛs.|"),
        ("5", "|fˈIv.|"),
        ("A", "|ˈA.|"),
        ("A dog", "|ɐ dˈɔɡ.|"),
        ("a dog or a?", "|ɐ dˈɔɡ ɔɹ ˈA?|"),
        ("NASA", "|nˈæsə.|"),
        ("the FBI", "|ði ˌɛfbˌiˈI.|"),
        ("HELLO THERE!", "|həlˈO ðˈɛɹ!|"),
        ("xkcd", "|ˌɛkskˌAsˌidˈi.|"),
        ("noooo", "|nˈO.|"),
        ("What?!", "|wˌʌt?|"),
        ("Hi... there", "|hˈI… ðˈɛɹ.|"),
        ('"Hi," she said (now).', "|“hˈI,” ʃi sˈɛd (nˈW).|"),
        ("Stop) it", "|stˈɑp ɪt.|"),
        ("One. Two", "|wˈʌn.||tˈu.|"),
        ("One\n\nTwo", "|wˈʌn.||tˈu.|"),
        ("one — two", "|wˈʌn — tˈu.|"),
    ],
)
def test_phonemes(phonemes, text: str, spoken: str) -> None:
    assert phonemes(text) == spoken


def test_unknown_words_and_capitals_have_phonemes(phonemes) -> None:
    for text in ("blorptastic", "BLORPTASTIC", "zzz", "Dvořák", "ŝŭĝ", "Łódź", "þæt", "hmm", "É"):
        assert len(phonemes(text)) > 4, text


def test_one_phonemizer_serves_many_threads(phonemizer: Phonemizer, read) -> None:
    texts = [f"{text} Zorblax{i} gribbled {i} times." for i, text in enumerate(PLAIN * 4)]
    alone = [read(text)[0] for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: read(text)[0], texts))
    assert together == alone
