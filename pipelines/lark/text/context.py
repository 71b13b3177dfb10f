"""What a reading may know of the words beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol


class Around(Protocol):
    """What a reading may know of the words beside it."""

    @property
    def before(self) -> str:
        """The word before in the same sentence, without punctuation; "" if there is none."""

    def after(self) -> str:
        """The word after, as far as nothing separates it; may raise NeedMore."""


class _Nowhere:
    """No neighbours."""

    before = ""

    def after(self) -> str:
        return ""


NOWHERE = _Nowhere()

Rule = tuple[str, Callable[[re.Match[str], Around], str | None]]
"""A pattern for a whole token, and the reading of what it matches; None lets other rules try."""
