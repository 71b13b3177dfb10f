"""The rows that condition the Talker: what a position reads beside the codes before it.

A row is float32: what its vector is, a codec token to add (or none), and the vector, one position
of the Thinker. Whole numbers are exact there, and so is every value of a half-precision Thinker.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

KIND, CODEC, VECTOR = 0, 1, 2
"""Columns: what the vector is, the codec token, and where the vector begins."""

NO_CODEC = -1

Rows = npt.NDArray[np.float32]


class RowKind(IntEnum):
    """What a row's vector is, and so which projection brings it to the Talker's width."""

    TEXT = 0
    """The Thinker's embedding of a token of text."""
    MEDIA = 1
    """The Thinker's hidden state at a position of sound."""
    PAD = 2
    """No vector: the embedding of the token that pads text."""
    BEGIN = 3
    """No vector: the embedding of the token that begins spoken text."""
    END = 4
    """No vector: the embedding of the token that ends spoken text."""


MARKS = (RowKind.PAD, RowKind.BEGIN, RowKind.END)
"""The kinds without a vector, in the order of the Talker's table for them."""


def row_width(thinker_hidden: int) -> int:
    """Columns of a row, for a Thinker of that width."""
    return VECTOR + thinker_hidden


def vector_rows(
    kinds: npt.NDArray[np.int64] | RowKind, vectors: Rows, codec: int = NO_CODEC
) -> Rows:
    """Rows with the Thinker's vectors, shape [rows, thinker hidden]."""
    rows = np.empty((len(vectors), row_width(vectors.shape[1])), np.float32)
    rows[:, KIND] = kinds
    rows[:, CODEC] = codec
    rows[:, VECTOR:] = vectors
    return rows


def mark_row(kind: RowKind, thinker_hidden: int, codec: int = NO_CODEC) -> Rows:
    """One row without a vector, shape [1, row width]."""
    row = np.zeros((1, row_width(thinker_hidden)), np.float32)
    row[0, KIND] = kind
    row[0, CODEC] = codec
    return row
