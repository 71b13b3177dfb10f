# ruff: noqa: RUF001 -- texts in many scripts
"""What comes out when: look-ahead, flush, words and offsets, long and odd inputs."""

from __future__ import annotations

import pytest

from pipelines.lark.text import Phonemizer, SpeechReader, Word
from pipelines.lark.text.reader import MAX_PHRASE, MAX_SENTENCE


def words_after(phonemizer: Phonemizer, pieces: list[str]) -> list[list[str]]:
    """Return what is read after each piece, without closing."""
    reader = SpeechReader(phonemizer)
    out = []
    for piece in pieces:
        reader.push(piece)
        out.append([word.text for phrase in iter(reader.read, None) for word in phrase.words])
    return out


def test_a_long_clause_is_spoken_before_it_ends(phonemizer: Phonemizer) -> None:
    text = "The quick brown fox jumps over the lazy dog near the old bank of the river"
    written = text.split()
    said: list[str] = []
    for count, new in enumerate(words_after(phonemizer, [w + " " for w in written]), start=1):
        said += new
        assert len(said) >= count - 2
    assert said == written


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        # A word is complete with the space after it.
        (["Hel", "lo", " "], [[], [], ["Hello"]]),
        # "the" depends on the sound that follows.
        (["the ", "end "], [[], ["the", "end"]]),
        # Is it "five" or "the fifth of"? Is "No." a word or "number"? Is "Dr." a drive?
        (["5 ", "March "], [[], ["5", "March"]]),
        (["No. ", "5 ", "is "], [[], ["No."], ["5", "is"]]),
        (["Dr. ", "Who "], [[], ["Dr.", "Who"]]),
        (["$2.5 ", "million "], [[], ["$2.5", "million"]]),
        (["$2.", "5 ", "or "], [[], [], ["$2.5", "or"]]),
        (["3.", "14 ", "is "], [[], ["3.14"], ["is"]]),
        # Half an address, a link, a tag, an entity.
        (["see bob@", "x.org ", "now "], [["see"], ["bob@x.org"], ["now"]]),
        (["[so](http:", "//x.y) ", "it "], [[], ["so"], ["it"]]),
        (["a <b", ">c ", "d "], [["a"], ["c"], ["d"]]),
        (["Q&am", "p;A ", "d "], [[], ["Q&amp;A"], ["d"]]),
    ],
)  # fmt: skip
def test_an_open_tail_is_held_back(
    phonemizer: Phonemizer, pieces: list[str], said: list[list[str]]
) -> None:
    assert words_after(phonemizer, pieces) == said


def test_flush_speaks_everything_pushed_so_far(phonemizer: Phonemizer) -> None:
    reader = SpeechReader(phonemizer)
    reader.push("I want to go to the")
    assert "the" not in [w.text for p in iter(reader.read, None) for w in p.words]
    reader.flush()
    phrases = list(iter(reader.read, None))
    assert phrases[-1].words[-1].text == "the"
    assert phrases[-1].ends_sentence
    reader.push(" end")
    assert reader.read() is None
    assert not reader.finished
    reader.close()
    (phrase,) = iter(reader.read, None)
    assert phrase.words == (Word("end", 20, 23),)
    assert reader.finished


def test_flushes_without_text_do_nothing(phonemizer: Phonemizer) -> None:
    reader = SpeechReader(phonemizer)
    for _ in range(3):
        reader.flush()
        assert reader.read() is None
    reader.close()
    assert reader.read() is None
    assert reader.finished


@pytest.mark.parametrize(
    "text", ["", " \n\t ", "?!...", "🎉🎉", "你好", "<b></b>", "---", "\u200b"]
)
def test_nothing_to_speak(read, text: str) -> None:
    phrases, reader = read(text)
    assert phrases == []
    assert reader.finished


def test_words_are_verbatim(read) -> None:
    text = "Pay $100 (now) at 5–10% — don’t “wait” for Dr. Smith&amp;Co 🎉 cafe\u0301!"
    phrases, reader = read(text)
    words = [word for phrase in phrases for word in phrase.words]
    assert [word.text for word in words] == [
        "Pay", "$100", "now", "at", "5–10%", "don’t", "wait", "for", "Dr.", "Smith&amp;Co",
        "cafe\u0301",
    ]  # fmt: skip
    assert all(text[word.start : word.end] == word.text for word in words)
    assert reader.left_out == ["🎉"]


def test_the_phonemes_of_a_quantity_belong_to_its_one_word(phonemizer: Phonemizer, read) -> None:
    ((phrase,), _) = read("$100")
    symbols = {index: symbol for symbol, index in phonemizer.vocabulary.items()}
    own = "".join(symbols[i] for i, w in zip(phrase.ids, phrase.word_of, strict=True) if w == 0)
    assert own == "wˈʌnhˈʌndɹəddˈɑləɹz"
    assert phrase.words == (Word("$100", 0, 4),)


def test_a_long_sentence_comes_in_bounded_phrases_and_is_split(read) -> None:
    phrases, _ = read("and so it goes on " * 200)
    assert all(len(phrase.ids) <= MAX_PHRASE + 40 for phrase in phrases)
    lengths = [0]
    for phrase in phrases:
        lengths[-1] += len(phrase.ids)
        if phrase.ends_sentence:
            lengths.append(0)
    assert len(lengths) > 5
    assert max(lengths) <= MAX_SENTENCE + 8


def test_a_long_sentence_is_rather_split_at_a_comma(read) -> None:
    phrases, _ = read(", ".join(["the water runs down to the sea"] * 40))
    ends = [phrase for phrase in phrases[:-1] if phrase.ends_sentence]
    assert ends
    assert all(phrase.words[-1].text == "sea" for phrase in ends)


@pytest.mark.parametrize(
    "text",
    ["a" * 50_000, "7" * 20_000, "https://x.com/" + "a/" * 10_000, "x&" * 10_000, "𝐚" * 20_000],
    ids=["letters", "digits", "address", "code", "styled"],
)
def test_a_token_without_end_is_read_to_its_end(read, text: str) -> None:
    phrases, _ = read(text)
    words = [word for phrase in phrases for word in phrase.words]
    assert "".join(word.text for word in words).replace("&", "") == text.replace("&", "")


@pytest.mark.parametrize("unit", ["<b>", "<", "(", "“ ", "&", "😀", "你好。", "\n", "```\n", "!? "])
def test_much_that_is_silent_ends(read, unit: str) -> None:
    phrases, _ = read("Hello " + unit * 5_000 + " world")
    words = [word.text for phrase in phrases for word in phrase.words]
    assert (words[0], words[-1]) == ("Hello", "world")
    assert len(words) == 2


def test_reading_is_lazy(phonemizer: Phonemizer) -> None:
    reader = SpeechReader(phonemizer)
    reader.push("Hello there, my friend. " * 4000)
    first = reader.read()
    assert first is not None
    assert [word.text for word in first.words] == ["Hello", "there"]
    assert reader._lexer._position < 100
