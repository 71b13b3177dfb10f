"""Servers whose engine answers by rote and that do not listen."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving


@pytest.fixture(scope="module")
def rote() -> Generator[Serving]:
    """A server that answers at once."""
    with serving(RoteEngine(), ear=False) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture(scope="module")
def slow_rote() -> Generator[Serving]:
    """A server that takes 50 ms for a word."""
    with serving(RoteEngine(pace=0.05), ear=False) as running:  # type: ignore[arg-type]
        yield running
