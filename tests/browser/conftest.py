"""The demo in Debian's Chromium, against servers whose engines hum or answer by rote."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from app.settings import default_static_folder
from tests.app.doubles import HummingEngine
from tests.app.serving import Serving, serving
from tests.browser.browsing import CHROMIUM, FAKE_MICROPHONE, chromium

FOLDER = Path(__file__).parent

expect.set_options(timeout=20_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where there is no Chromium, these tests are skipped."""
    if CHROMIUM is not None:
        return
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="Chromium is not installed."))


@pytest.fixture(scope="module")
def playwright() -> Generator[Playwright]:
    """Playwright itself."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Generator[Browser]:
    """A browser whose microphone beeps and is given without asking."""
    with chromium(playwright, *FAKE_MICROPHONE) as started:
        yield started


@pytest.fixture(scope="module")
def humming() -> Generator[Serving]:
    """A server that takes 40 ms for a word of 200 ms."""
    with serving(
        HummingEngine(pace=0.04), static_folder=default_static_folder(), ear=False
    ) as running:
        yield running
