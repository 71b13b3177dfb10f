"""Per-request conditioning of an autoregressive stage: rows in, codes kept, by request.

Rows are numbers on the host; what another stage computed for them stays on the device. State
is keyed by request identifier and never by position in a batch, so that no request can be
conditioned on another's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from engine.adapter import FeedRows, Padding

if TYPE_CHECKING:
    from engine.code_choice import CodeStream


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


class GrowingVectors:
    """Rows of a tensor on a device that grows at its end, with amortised constant cost a row.

    They are copied there without waiting, from whatever device they are on.
    """

    def __init__(self, width: int, dtype: torch.dtype, device: torch.device) -> None:
        """Makes an empty tensor of rows with `width` columns."""
        self._values = torch.empty(0, width, dtype=dtype, device=device)
        self._zero = torch.zeros(1, width, dtype=dtype, device=device)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, vectors: torch.Tensor) -> None:
        """Appends vectors, shape [n, width]; their dtype is converted."""
        self._grow(len(vectors)).copy_(vectors, non_blocking=True)

    def extend_by_zeros(self, count: int) -> None:
        """Appends vectors that are zero."""
        self._grow(count).zero_()

    def _grow(self, count: int) -> torch.Tensor:
        start, self._length = self._length, self._length + count
        if self._length > len(self._values):
            room = max(self._length, 2 * len(self._values), 64)
            grown = self._values.new_empty(room, self._values.shape[1])
            grown[:start].copy_(self._values[:start])
            self._values = grown
        return self._values[start : self._length]

    def span(self, start: int, stop: int) -> list[torch.Tensor]:
        """Vectors start..stop-1 as views, in pieces; those behind the last one are zero."""
        known = self._values[start : min(stop, self._length)]
        missing = stop - max(start, self._length)
        return [known] if missing <= 0 else [known, self._zero.expand(missing, -1)]


class Feed:
    """One request's conditioning rows and the codes its steps made.

    The first `prompt_rows` rows are the prompt; the step at its last row makes the first codes.
    Every later step reads its own row and the codes of the step before it. Both are kept, since a
    preempted request is computed again from its first row.
    """

    def __init__(
        self,
        row_width: int,
        row_dtype: npt.DTypeLike,
        codebooks: int,
        vectors: GrowingVectors | None = None,
    ) -> None:
        """Makes an empty, open feed; `vectors` takes those of a model that reads any."""
        self.rows = GrowingRows(row_width, row_dtype)
        self.vectors = vectors
        self.codes = GrowingRows(codebooks, np.int64)
        self.tags: list[Any] = []
        self.closed = False
        self.prompt_rows = 1
        self.padding: Padding | None = None
        self.places: npt.NDArray[np.int64] | None = None
        self.code_stream: CodeStream | None = None

    def append(self, rows: FeedRows) -> None:
        """Adds rows for coming steps.

        Raises:
            ValueError: The feed is closed, a later payload has a prompt, or vectors came for a
                model that reads none.
        """
        if self.closed:
            raise ValueError("The feed is closed; no rows can follow.")
        if rows.vectors is not None and self.vectors is None:
            raise ValueError("Feed rows came with vectors, but the model's vector_width is 0.")
        if not len(self.rows):
            self.prompt_rows, self.padding = rows.prompt_rows, rows.padding
            self.places = rows.places
        elif rows.prompt_rows > 1:
            raise ValueError("Only the first rows of a request can be its prompt.")
        else:
            self._keep_padding()
        self._extend(rows.values, rows.vectors)
        self.tags.extend(rows.tags or (None,) * len(rows.values))

    def _extend(self, values: npt.NDArray[Any], vectors: torch.Tensor | None) -> None:
        self.rows.extend(values)
        if vectors is not None and self.vectors is not None:
            self.vectors.extend(vectors)
        elif self.vectors is not None:
            self.vectors.extend_by_zeros(len(values))

    def _keep_padding(self) -> None:
        """Makes the padding that steps have read rows of their own, so that later ones follow."""
        read = -self.steps_ahead
        if self.padding is not None and read > 0:
            padded = np.broadcast_to(self.padding.row, (read, len(self.padding.row)))
            self._extend(padded, None)
            self.tags.extend((None,) * read)

    def close(self) -> None:
        """Says that no more rows come; without padding the request ends after the last one."""
        self.closed = True

    def prompt_places(self, rotary_rows: int) -> npt.NDArray[np.int64]:
        """Where the rotary embedding has the prompt's rows, shape [rotary rows, prompt rows]."""
        if self.places is not None:
            return self.places
        return np.tile(np.arange(self.prompt_rows), (rotary_rows, 1))

    @property
    def steps_ahead(self) -> int:
        """How many steps can run on the rows that are here; negative after steps on padding."""
        return len(self.rows) - (self.prompt_rows - 1) - len(self.codes)

    @property
    def can_step(self) -> bool:
        """Whether the next step has something to read."""
        if self.steps_ahead > 0:
            return True
        pads = self.padding is not None and (self.closed or self.padding.while_open)
        return pads and len(self.rows) > 0

    def rows_at(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Rows start..stop-1, with padding behind the last one.

        Raises:
            IndexError: A row is not there, and there is no padding.
        """
        known = len(self.rows)
        if stop <= known or self.padding is None:
            return self.rows.span(start, stop)
        padded = np.broadcast_to(
            self.padding.row, (stop - max(start, known), len(self.padding.row))
        )
        return np.concatenate([self.rows.span(min(start, known), known), padded])

    def tag_of(self, step: int) -> Any | None:
        """The tag of the row that a step read; None for padding."""
        index = step + self.prompt_rows - 1
        return self.tags[index] if index < len(self.tags) else None


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
