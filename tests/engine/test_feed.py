from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.adapter import FeedRows, Padding
from engine.feed import Feed, FeedStore, GrowingRows


@given(st.lists(st.integers(0, 100), max_size=12))
def test_rows_grow_and_stay_what_they_were(sizes: list[int]) -> None:
    rows = GrowingRows(2, np.int64)
    expected = np.arange(2 * sum(sizes)).reshape(-1, 2)
    start = 0
    for size in sizes:
        rows.extend(expected[start : start + size])
        start += size
        assert len(rows) == start
        assert np.array_equal(rows.span(0, start), expected[:start])


def test_a_row_that_is_not_there_is_not_made_up() -> None:
    rows = GrowingRows(2, np.int64)
    rows.extend(np.zeros((3, 2), np.int64))
    with pytest.raises(IndexError, match="Row 3 was asked for, but only 3 exist"):
        rows.span(2, 4)


def feed_rows(count: int) -> FeedRows:
    return FeedRows(np.zeros((count, 2), np.int64), tuple(range(count)))


def test_rows_come_with_one_tag_each() -> None:
    with pytest.raises(ValueError, match="2 feed rows came with 1 tags"):
        FeedRows(np.zeros((2, 2)), ("one",))


def test_steps_ahead_are_rows_without_codes() -> None:
    feed = Feed(2, np.int64, 5)
    feed.append(feed_rows(3))
    feed.codes.extend(np.zeros((1, 5), np.int64))
    assert feed.steps_ahead == 2
    feed.close()
    assert feed.steps_ahead == 2
    with pytest.raises(ValueError, match="closed"):
        feed.append(feed_rows(1))


def test_feeds_are_kept_by_request() -> None:
    store = FeedStore()
    feed = Feed(2, np.int64, 5)
    store.add("a", feed)
    with pytest.raises(ValueError, match="has a feed already"):
        store.add("a", Feed(2, np.int64, 5))
    assert store.get("a") is feed
    assert store.get("b") is None
    store.remove("a")
    store.remove("a")
    assert len(store) == 0


def prompted(rows: int, prompt: int, padding: Padding | None = None) -> Feed:
    feed = Feed(2, np.int64, 5)
    values = np.arange(2 * rows).reshape(rows, 2)
    feed.append(FeedRows(values, tuple(range(rows)), prompt_rows=prompt, padding=padding))
    return feed


def took_steps(feed: Feed, count: int) -> None:
    feed.codes.extend(np.zeros((count, 5), np.int64))


PADDING = Padding(np.array([7, 8]))


def test_a_prompt_is_read_by_one_step() -> None:
    feed = prompted(5, prompt=4)
    assert feed.steps_ahead == 2
    assert feed.tag_of(0) == 3
    took_steps(feed, 1)
    assert feed.steps_ahead == 1
    assert feed.tag_of(1) == 4


@pytest.mark.parametrize("prompt", [0, 3])
def test_a_prompt_must_be_here(prompt: int) -> None:
    with pytest.raises(ValueError, match=f"2 feed rows came with prompt_rows of {prompt}"):
        FeedRows(np.zeros((2, 2)), prompt_rows=prompt)


def test_only_the_first_rows_are_a_prompt() -> None:
    feed = prompted(2, prompt=2)
    with pytest.raises(ValueError, match="Only the first rows"):
        feed.append(FeedRows(np.zeros((2, 2)), prompt_rows=2))


def test_steps_wait_for_rows_while_the_feed_is_open_and_pad_behind_its_end() -> None:
    feed = prompted(3, prompt=3, padding=PADDING)
    took_steps(feed, 1)
    assert not feed.can_step
    feed.append(FeedRows(np.array([[100, 101]])))
    assert feed.can_step
    took_steps(feed, 1)
    assert not feed.can_step
    feed.close()
    assert feed.can_step
    took_steps(feed, 4)
    assert feed.can_step
    assert feed.rows_at(2, 6).tolist() == [[4, 5], [100, 101], [7, 8], [7, 8]]
    assert feed.rows_at(5, 6).tolist() == [[7, 8]]


def test_rows_that_come_after_padding_do_not_take_its_place() -> None:
    feed = prompted(2, prompt=2, padding=Padding(np.array([7, 8]), while_open=True))
    took_steps(feed, 3)
    assert feed.can_step
    feed.append(FeedRows(np.array([[100, 101]]), ("late",)))
    assert feed.steps_ahead == 1
    assert feed.rows_at(0, 6).tolist() == [[0, 1], [2, 3], [7, 8], [7, 8], [100, 101], [7, 8]]
    assert [feed.tag_of(step) for step in range(5)] == [1, None, None, "late", None]


def test_without_rows_there_is_nothing_to_pad() -> None:
    feed = Feed(2, np.int64, 5)
    feed.close()
    assert not feed.can_step


def test_without_padding_a_row_that_is_not_there_is_not_made_up() -> None:
    with pytest.raises(IndexError, match="Row 3 was asked for"):
        prompted(3, prompt=3).rows_at(2, 4)
