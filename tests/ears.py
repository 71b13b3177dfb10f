"""Whether this machine has what the ear needs."""

from __future__ import annotations

import functools

import pytest

from app.settings import Settings
from engine.catalogue import Catalogue


@functools.cache
def _missing() -> str | None:
    settings = Settings()
    catalogue = Catalogue.installed(settings.cache_folder)
    names = (
        settings.ear_activity_model,
        settings.ear_turn_end_model,
        settings.ear_recognizer_model,
    )
    return next((name for name in names if catalogue.problem(name)), None)


def need_ear() -> None:
    """Skips where a model of the ear is not on this machine."""
    missing = _missing()
    if missing is not None:
        pytest.skip(f"the model {missing} is not here: antiphon models fetch --for conversation")
