"""Servers with the humming engine."""

from __future__ import annotations

from collections.abc import Generator

import httpx
import pytest

from tests.app.serving import Serving, serving


@pytest.fixture(scope="module")
def humming() -> Generator[Serving]:
    """One server for the tests of a module."""
    with serving() as running:
        yield running


@pytest.fixture
def client(humming: Serving) -> Generator[httpx.Client]:
    """An HTTP client of that server."""
    with httpx.Client(base_url=humming.base_url, timeout=20) as http:
        yield http
