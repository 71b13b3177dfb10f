# ruff: noqa: RUF001, E501 -- texts in many scripts
"""What holds for every text and every way of cutting it into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.lark.text import Phrase, SpeechReader, inspect_text
from pipelines.lark.text.reader import MAX_SENTENCE

FRAGMENTS = (
    "The quick brown fox", "to", "the", "a", "A", "I read", "have", "used to", "live", "No.",
    "no.", "Dr.", "St.", "e.g.", "i.e.", "U.S.", "p.m.", "J.", "Mr. Smith", "etc.", "Inc.",
    "$100", "$2.5", "million", "$5-$10", "€5.50", "5", "5 km/h", "20", "°C", "3.14", "10.000.000",
    "1,234.5", "1/2", "2024-03-05", "3/5/2024", "March 3rd", "May", "5 March", "2024", "1500 words",
    "7:30", "pm", "7:00", "(555) 123-4567", "+44 20 7946", "5–10", "5 - 3", "50%", "%",
    "bob@example.com", "https://example.com/a?b=c", "www.x.org", "file_name.py", "camelCase",
    "v1.2.3", "foo()", "C++", "a[i](x)", "**bold**", "*it*", "`code`", "[link](http://x.y)",
    '[t](u "v")', "[a][1]", "![i](j)", "# Head", "- item", "1. first", "2)", "> quote", "```py",
    "```", "~~~", "| a | b |", "|---|", "---", "***", "&amp;", "&nbsp;", "&#128512;", "&", "<b>",
    "</b>", "<br>", "<a href='x'>", "<x", "<", ">", "<!-- c -->", "<3", ":)", "HELLO", "FBI", "XKCD",
    "it's", "don’t", "“quoted”", '"quoted"', "'90s", "…", "...", "—", "–", "-", "--", "!", "?", "?!",
    ".", ",", ";", ":", "。", "！", "、", "你好", "world。", "Привет", "שלום", "😀", "👍🏽", "5️⃣",
    "é", "e\u0301", "\u0301", "ﬁ", "½", "x²", "π", "\u200b", "\u00a0", "\x00", "\ud83d", "\ude00",
    "nooooo", "hmm", "zxq", "Henry VIII", "Part II", "#5", "#tag", "@user", "\\", "^", "_", "~", "=",
    "+", "/", "a" * 70, "1" * 40, "ab/" * 30, "Hello.World", "one,two", "one—two", "wait...what",
)  # fmt: skip
GAPS = (" ", " ", " ", " ", "", "", "\n", "\n\n", "\t", "\r\n", "  ", " \n \n ")

texts = st.one_of(
    st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(GAPS)), max_size=16).map(
        lambda parts: "".join(fragment + gap for fragment, gap in parts)
    ),
    st.text(max_size=80),
    st.text(alphabet="aAbI 019.,:-/$€%'\"()[]<>&*_`#|!?\n😀é。", max_size=60),
)
several = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(places)]


def joined(phrases: list[Phrase]) -> tuple[list[int], list[int], list[tuple[str, int, int]]]:
    ids: list[int] = []
    word_of: list[int] = []
    words: list[tuple[str, int, int]] = []
    for phrase in phrases:
        ids += phrase.ids
        word_of += [index + len(words) if index >= 0 else -1 for index in phrase.word_of]
        words += [(word.text, word.start, word.end) for word in phrase.words]
    return ids, word_of, words


@several
@given(text=texts, cuts=st.lists(st.integers(0, 10_000), max_size=30))
def test_the_pieces_do_not_matter(read, text: str, cuts: list[int]) -> None:
    whole, whole_reader = read(text)
    split, split_reader = read(pieces_of(text, cuts))
    assert joined(split) == joined(whole)
    assert split_reader.left_out == whole_reader.left_out


@several
@given(text=texts)
def test_nor_does_every_single_character(read, text: str) -> None:
    assert joined(read(list(text))[0]) == joined(read(text)[0])


@several
@given(text=texts)
def test_words_are_slices_in_order_and_have_phonemes(read, text: str) -> None:
    ids, word_of, words = joined(read(text)[0])
    assert len(ids) == len(word_of)
    position = 0
    for written, start, end in words:
        assert position <= start < end <= len(text)
        assert text[start:end] == written
        position = end
    assert {index for index in word_of if index >= 0} == set(range(len(words)))
    spoken = [index for index in word_of if index >= 0]
    assert spoken == sorted(spoken)


@several
@given(text=texts)
def test_sentences_are_framed_and_bounded(read, text: str) -> None:
    sentences: list[list[int]] = [[]]
    for phrase in read(text)[0]:
        assert phrase.ids
        sentences[-1] += phrase.ids
        assert phrase.ends_sentence == (phrase.ids[-1] == 0)
        if phrase.ends_sentence:
            sentences.append([])
    assert sentences.pop() == []
    for sentence in sentences:
        assert sentence[0] == sentence[-1] == 0
        assert 0 not in sentence[1:-1]
        assert 3 <= len(sentence) <= MAX_SENTENCE + 100


@several
@given(text=texts)
def test_the_quick_look_agrees_with_the_reading(read, text: str) -> None:
    report = inspect_text(text)
    phrases, reader = read(text)
    assert report.speakable == bool(phrases)
    assert list(report.left_out) == reader.left_out


@several
@given(text=st.text(alphabet=st.characters(exclude_characters="<>&[]()`~"), max_size=60))
def test_no_letter_or_digit_is_lost(read, text: str) -> None:
    phrases, reader = read(text)
    covered = set()
    for word in joined(phrases)[2]:
        covered.update(range(word[1], word[2]))
    for place, character in enumerate(text):
        if character.isalnum() and place not in covered:
            assert character in reader.left_out


@several
@given(text=texts, cut=st.integers(0, 10_000))
def test_a_flush_makes_everything_before_it_final(phonemizer, read, text: str, cut: int) -> None:
    head = text[: cut % (len(text) + 1)]
    tail = text[len(head) :]
    reader = SpeechReader(phonemizer)
    reader.push(head)
    reader.flush()
    before = list(iter(reader.read, None))
    assert joined(before)[0] == joined(read(head)[0])[0]
    assert not before or before[-1].ends_sentence
    assert not reader.finished
    reader.push(tail)
    reader.close()
    list(iter(reader.read, None))
    assert reader.finished
