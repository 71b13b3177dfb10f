"""Word errors, counted as `antiphon eval` counts them."""

from __future__ import annotations

from app.evaluation.words_error import Alignment, align, normalised, number_words

__all__ = ["Alignment", "align", "normalised", "number_words"]
