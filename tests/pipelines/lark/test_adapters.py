"""The adapters: rows with their look-ahead, frames with the times of the written words."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from engine import TextPayload, UsagePayload, WordTiming
from engine.adapter import FeedRows, StepOutput
from pipelines.lark.adapters import CodesToFrames, Tag, TextToPhonemes
from pipelines.lark.codec import Codec
from pipelines.lark.decoder import load_code2wav
from pipelines.lark.pipeline import LOOKAHEAD, WEIGHTS
from pipelines.lark.stretch import split_speed
from pipelines.lark.text import Phonemizer, Word

TEXT = "Dr. Smith paid $12.50, twice! Yes."


@pytest.fixture(scope="module")
def phonemizer() -> Phonemizer:
    return Phonemizer()


def pulled(adapter: TextToPhonemes) -> FeedRows:
    pieces = []
    while (piece := adapter.pull()) is not None:
        pieces.append(piece)
    if not pieces:
        return FeedRows(np.zeros((0, 2 + LOOKAHEAD), np.int64), ())
    tags = tuple(tag for piece in pieces for tag in piece.tags)
    return FeedRows(np.concatenate([piece.values for piece in pieces]), tags)


def whole(phonemizer: Phonemizer, text: str) -> FeedRows:
    adapter = TextToPhonemes(phonemizer, 3, LOOKAHEAD)
    adapter.push(TextPayload(text))
    adapter.close()
    rows = pulled(adapter)
    assert adapter.finished
    return rows


def test_each_row_sees_the_phonemes_that_follow_within_its_sentence(
    phonemizer: Phonemizer,
) -> None:
    rows = whole(phonemizer, TEXT).values
    assert set(rows[:, 0]) == {3}
    ids = rows[:, 1].tolist()
    silences = [position for position, phoneme in enumerate(ids) if phoneme == 0]
    assert len(silences) == 4, "two sentences, a silence at each end"
    for first, last in zip(silences[::2], silences[1::2], strict=True):
        for position in range(first, last + 1):
            following = ids[position + 1 : min(position + 1 + LOOKAHEAD, last + 1)]
            padded = following + [0] * (LOOKAHEAD - len(following))
            assert rows[position, 2:].tolist() == padded, position


def test_rows_are_the_same_however_the_text_comes(phonemizer: Phonemizer) -> None:
    adapter = TextToPhonemes(phonemizer, 3, LOOKAHEAD)
    pieces = []
    for character in TEXT:
        adapter.push(TextPayload(character))
        pieces.append(pulled(adapter).values)
    adapter.close()
    pieces.append(pulled(adapter).values)
    assert np.array_equal(np.concatenate(pieces), whole(phonemizer, TEXT).values)


def test_rows_come_before_the_sentence_ends(phonemizer: Phonemizer) -> None:
    adapter = TextToPhonemes(phonemizer, 0, LOOKAHEAD)
    adapter.push(TextPayload("The quick brown fox jumps "))
    assert len(pulled(adapter).values) > 8


def test_in_a_hurry_nothing_is_held_back(phonemizer: Phonemizer) -> None:
    adapter = TextToPhonemes(phonemizer, 0, LOOKAHEAD)
    adapter.push(TextPayload("The quick brown"))
    pulled(adapter)
    adapter.hurry()
    assert pulled(adapter).tags[-2] is None or pulled(adapter).tags == ()
    adapter.push(TextPayload(" fox."))
    adapter.close()
    words = {tag.word.text for tag in pulled(adapter).tags if tag is not None}
    assert words == {"fox"}


def test_what_a_thinker_sends_beside_text_is_not_spoken(phonemizer: Phonemizer) -> None:
    adapter = TextToPhonemes(phonemizer, 0, LOOKAHEAD)
    adapter.push(UsagePayload(1, 0, 1, truncated=False))
    adapter.close()
    assert adapter.pull() is None
    assert adapter.finished


def timed(rows: FeedRows, speed: float) -> tuple[list[WordTiming], float]:
    adapter = CodesToFrames(load_code2wav(WEIGHTS).codec, speed)
    words: list[WordTiming] = []
    frames = 0
    for index, tag in enumerate(rows.tags):
        adapter.push(StepOutput(np.array([index % 7, 1, 1, 1, 1]), None, tag))
        while (made := adapter.pull()) is not None:
            frames += made.units
            words.extend(made.words)
    adapter.close()
    assert adapter.finished
    return words, frames / 80 / split_speed(speed)[1]


def test_every_written_word_is_timed_once_verbatim_and_in_order(phonemizer: Phonemizer) -> None:
    words, seconds = timed(whole(phonemizer, TEXT), 1.0)
    assert [word.text for word in words] == ["Dr.", "Smith", "paid", "$12.50", "twice", "Yes"]
    for word in words:
        assert TEXT[word.start_character : word.end_character] == word.text
        assert 0 <= word.start < word.end <= seconds
    assert all(a.end <= b.start for a, b in itertools.pairwise(words))


def test_a_word_is_known_with_its_last_phoneme() -> None:
    adapter = CodesToFrames(load_code2wav(WEIGHTS).codec, 1.0)
    word = Word("hi", 0, 2)
    adapter.push(StepOutput(np.array([3, 0, 0, 0, 0]), None, Tag(word, last=False)))
    adapter.push(StepOutput(np.array([1, 0, 0, 0, 0]), None, Tag(word, last=True)))
    first, second = adapter.pull(), adapter.pull()
    assert first is not None
    assert second is not None
    assert first.words == ()
    assert second.words == (WordTiming("hi", 0, 2, 0.0, 12 / 80),)


@pytest.mark.parametrize(("code", "units"), [(0, 4), (1, 4), (2, 6)])
def test_a_word_of_one_phoneme_lasts_long_enough_to_be_heard(code: int, units: int) -> None:
    codec = load_code2wav(WEIGHTS).codec
    adapter = CodesToFrames(Codec(replace(codec.codebooks, tempo=1.0)), 1.0)
    adapter.push(StepOutput(np.array([code, 0, 0, 0, 0]), None, Tag(Word("a", 0, 1), last=True)))
    made = adapter.pull()
    assert made is not None
    assert made.units == units
    assert made.words[0].text == "a"


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
def test_speed_scales_the_times(phonemizer: Phonemizer, speed: float) -> None:
    rows = whole(phonemizer, TEXT)
    normal, seconds = timed(rows, 1.0)
    scaled, scaled_seconds = timed(rows, speed)
    assert scaled_seconds == pytest.approx(seconds / speed, abs=0.02)
    for one, other in zip(normal, scaled, strict=True):
        assert other.start == pytest.approx(one.start / speed, abs=0.02)
