"""Chromium, driven by Playwright, and what a page did in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright

CHROMIUM = shutil.which("chromium")

ARGUMENTS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

FAKE_MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")

_WATCHING = (Path(__file__).parent / "watching.js").read_text()


@contextmanager
def chromium(playwright: Playwright, *arguments: str) -> Generator[Browser]:
    """Debian's Chromium."""
    browser = playwright.chromium.launch(
        executable_path=CHROMIUM, args=[*ARGUMENTS, *arguments], timeout=90_000
    )
    try:
        yield browser
    finally:
        browser.close()


@dataclass
class Watched:
    """A page, and what should not have happened in it."""

    page: Page
    mistakes: list[str] = field(default_factory=list)
    """Errors on the console and exceptions that nobody caught."""

    def seen(self, expression: str) -> Any:
        """Something that the page's watcher noted."""
        return self.page.evaluate(f"seen.{expression}")

    def until(self, expression: str, seconds: float = 30.0) -> None:
        """Waits until an expression is true in the page."""
        deadline = time.monotonic() + seconds
        # Playwright's own waiting evaluates strings in the page, which its policy forbids.
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            self.page.wait_for_timeout(30)

    def sound_events(self) -> list[dict[str, Any]]:
        """What the output worklet told of utterances, in order."""
        events: list[dict[str, Any]] = self.seen(
            "reports.flatMap(({ at, events }) => events.map((event) => ({ ...event, at })))"
        )
        return events


def hide(page: Page, hidden: bool) -> None:
    """What a page sees when another tab is looked at; headless browsers have no other tab."""
    state = "hidden" if hidden else "visible"
    page.evaluate(
        """([hidden, state]) => {
            const be = (name, value) =>
                Object.defineProperty(document, name, { configurable: true, value });
            be('hidden', hidden);
            be('visibilityState', state);
            document.dispatchEvent(new Event('visibilitychange'));
        }""",
        [hidden, state],
    )


def barriers(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds: each rule that is broken, and where."""
    violations = Axe().run(page).response["violations"]
    return [
        (violation["id"], [node["html"][:120] for node in violation["nodes"]])
        for violation in violations
    ]


@contextmanager
def browsing(
    browser: Browser, url: str, *, forgive: tuple[str, ...] = (), **options: Any
) -> Generator[Watched]:
    """Opens a page; when the block ends, nothing may have gone wrong in it.

    Args:
        browser: Where to open it.
        url: What to open.
        forgive: Console errors that hold one of these are no mistake.
        options: Of the browser's context.
    """
    context = browser.new_context(**options)
    context.set_default_timeout(30_000)
    context.add_init_script(_WATCHING)
    page = context.new_page()
    watched = Watched(page)

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            watched.mistakes.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: watched.mistakes.append(str(error)))
    try:
        page.goto(url)
        yield watched
        violations = watched.seen("violations")
    finally:
        context.close()
    mistakes = [text for text in watched.mistakes if not any(part in text for part in forgive)]
    assert mistakes == []
    assert violations == []
