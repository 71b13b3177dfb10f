"""Per-request conditioning of an autoregressive stage: rows in, codes kept, by request.

State is keyed by request identifier and never by position in a batch, so that no request can be
conditioned on another's rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.adapter import FeedRows


class GrowingRows:
    """A two-dimensional array that grows at its end, with amortised constant cost a row."""

    def __init__(self, width: int, dtype: npt.DTypeLike) -> None:
        """Makes an empty array of rows with `width` columns."""
        self._values: npt.NDArray[Any] = np.empty((64, width), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Appends rows, shape [n, width]."""
        needed = self._length + len(rows)
        if needed > len(self._values):
            shape = (max(needed, 2 * len(self._values)), self._values.shape[1])
            grown = np.empty(shape, self._values.dtype)
            grown[: self._length] = self._values[: self._length]
            self._values = grown
        self._values[self._length : needed] = rows
        self._length = needed

    def span(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Rows start..stop-1 as a view."""
        if stop > self._length:
            raise IndexError(f"Row {stop - 1} was asked for, but only {self._length} exist.")
        return self._values[start:stop]


class Feed:
    """One request's conditioning rows and the codes its steps made.

    Step t reads row t and the codes of step t-1; both are kept, since a preempted request is
    computed again from its first step.
    """

    def __init__(self, row_width: int, row_dtype: npt.DTypeLike, codebooks: int) -> None:
        """Makes an empty, open feed."""
        self.rows = GrowingRows(row_width, row_dtype)
        self.codes = GrowingRows(codebooks, np.int64)
        self.tags: list[Any] = []
        self.closed = False

    def append(self, rows: FeedRows) -> None:
        """Adds rows for coming steps.

        Raises:
            ValueError: The feed is closed.
        """
        if self.closed:
            raise ValueError("The feed is closed; no rows can follow.")
        self.rows.extend(rows.values)
        self.tags.extend(rows.tags)

    def close(self) -> None:
        """Says that no more rows come; the request ends after the last one."""
        self.closed = True

    @property
    def steps_ahead(self) -> int:
        """How many steps can run on the rows that are here."""
        return len(self.rows) - len(self.codes)


class FeedStore:
    """All feeds of one replica, by request identifier."""

    def __init__(self) -> None:
        """Makes an empty store."""
        self._feeds: dict[str, Feed] = {}

    def add(self, request_id: str, feed: Feed) -> None:
        """Registers a request's feed.

        Raises:
            ValueError: The request has one already.
        """
        if request_id in self._feeds:
            raise ValueError(f"Request {request_id!r} has a feed already.")
        self._feeds[request_id] = feed

    def get(self, request_id: str) -> Feed | None:
        """The request's feed, if it is conditioned."""
        return self._feeds.get(request_id)

    def remove(self, request_id: str) -> None:
        """Forgets a request; harmless if it is not there."""
        self._feeds.pop(request_id, None)

    def __len__(self) -> int:
        return len(self._feeds)
