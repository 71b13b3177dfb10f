"""The rows that condition the Talker: what a position reads beside the code before it.

A row names a codec token to add (or none), and a mark or none. Without a mark its vector, one
position of the Thinker, goes beside it and stays on the Thinker's device until the Talker takes it.
A mark stands for the Thinker's embedding of a token that is the same for all, which the Talker has.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CODE, MARK = 0, 1
"""Columns: the codec token, and the mark."""

ROW_WIDTH = 2
NOTHING = -1
"""Stands where a row has no codec token or no mark."""

Rows = npt.NDArray[np.int32]


def vector_rows(count: int, code: int = NOTHING) -> Rows:
    """Rows whose vectors go beside them, shape [count, 2]."""
    return np.tile(np.array([code, NOTHING], np.int32), (count, 1))


def mark_row(mark: int, code: int = NOTHING) -> Rows:
    """One row with a mark, shape [1, 2]."""
    return np.array([[code, mark]], np.int32)
