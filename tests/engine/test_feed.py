from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.adapter import FeedRows
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
