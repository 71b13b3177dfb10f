"""The rows that condition the Talker: what a position reads beside the codes before it.

A row tells what its vector is, and a codec token to add (or none). The vector, one position of the
Thinker, goes beside it and stays on the Thinker's device until the Talker takes it.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

KIND, CODEC = 0, 1
"""Columns: what the vector is, and the codec token."""

ROW_WIDTH = 2
NO_CODEC = -1

Rows = npt.NDArray[np.int32]


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


def rows_of(kinds: npt.NDArray[np.int64] | RowKind, count: int, codec: int = NO_CODEC) -> Rows:
    """Rows of one kind, or of as many kinds, with the same codec token; shape [count, 2]."""
    rows = np.empty((count, ROW_WIDTH), np.int32)
    rows[:, KIND] = kinds
    rows[:, CODEC] = codec
    return rows
