"""The page as a whole: its policy, and whether everyone can use it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.app.serving import Serving
from tests.browser.browsing import barriers, browsing, hide

VIEWS = ["talk", "speak", "watch"]
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "is_mobile": True,
    "has_touch": True,
}


def test_the_page_may_only_do_what_it_must(humming: Serving) -> None:
    for path in ("/", "/scripts/main.js", "/styles/base.css"):
        response = httpx.get(humming.base_url + path)
        assert response.status_code == httpx.codes.OK
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "Content-Security-Policy" not in httpx.get(f"{humming.base_url}/v1/models").headers


def test_the_policy_holds(browser: Browser, humming: Serving) -> None:
    attempts = {
        "markup": "document.body.innerHTML = '<b>x</b>'",
        "handler": "document.body.setAttribute('onclick', 'window.ran = true')",
        "script": "document.createElement('script').src = 'https://elsewhere.test/x.js'",
        "fetch": "await fetch('https://elsewhere.test/')",
    }
    context = browser.new_context()
    page = context.new_page()
    page.goto(humming.base_url)
    for name, code in attempts.items():
        outcome = page.evaluate(
            f"(async () => {{ try {{ {code}; return 'done'; }} catch (e) {{ return e.name; }} }})()"
        )
        assert outcome == "TypeError", name
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(browser: Browser, humming: Serving, view: str, scheme: Any) -> None:
    options = {"color_scheme": scheme, "reduced_motion": "reduce"}
    with browsing(browser, f"{humming.base_url}/#speak", **options) as watched:
        page = watched.page
        page.fill("#speak-text", "One two three, and some more words for the ear.")
        page.click("#speak-start")
        watched.until("seen.reports.some((report) => report.level > 0.1)")
        page.click(f"a[data-view={view}]")
        page.wait_for_timeout(500)
        assert barriers(page) == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_a_phone(browser: Browser, humming: Serving, view: str) -> None:
    with browsing(browser, f"{humming.base_url}/#{view}", **PHONE) as watched:
        page = watched.page
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        small = page.evaluate(
            """[...document.querySelectorAll('button, select, .tabs a')]
            .filter((one) => one.checkVisibility() && !one.classList.contains('link'))
            .filter((one) => one.getBoundingClientRect().height < 30)
            .map((one) => one.id || one.textContent)"""
        )
        assert small == [], "too small for a finger"


def test_the_keyboard_is_enough(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        page.focus("#speak-text")
        page.keyboard.press("Control+a")
        page.keyboard.type("One two three")
        page.keyboard.press("Tab")
        expect(page.locator("#speak-start")).to_be_focused()
        page.keyboard.press("Enter")
        watched.until("seen.reports.some((report) => report.level > 0.1)")
        page.focus("a[data-view=watch]")
        page.keyboard.press("Enter")
        expect(page.locator("#watch-title")).to_be_focused()


def test_text_that_runs_from_right_to_left_does(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", "مرحبا بالعالم")
        page.click("#speak-start")
        reading = page.locator("#speak-reading")
        expect(reading).to_be_visible()
        assert reading.evaluate("(element) => getComputedStyle(element).direction") == "rtl"


def test_a_hidden_page_does_not_ask_the_server(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#watch") as watched:
        page = watched.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        expect(page.locator("#load-tiles")).to_contain_text("GiB")
        hide(page, True)
        page.wait_for_timeout(300)
        asked.clear()
        page.wait_for_timeout(2500)
        assert asked == []
        hide(page, False)
        for path in ("/metrics", "/ready"):
            with page.expect_request(f"**{path}"):
                pass


def test_a_server_that_is_gone_is_said(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak", forgive=("net::",)) as watched:
        page = watched.page
        expect(page.locator("#server-status")).to_have_attribute("data-state", "ready")
        page.context.set_offline(True)
        page.click("#speak-start")
        expect(page.locator(".notice")).to_contain_text("cannot be reached")


def test_a_server_that_starts_is_waited_for(browser: Browser, humming: Serving) -> None:
    starting = {"ready": False, "status": "starting", "step": "Loading stage talker of lark"}
    with browsing(browser, "about:blank", forgive=("503",), **PHONE) as watched:
        page = watched.page
        page.route("**/ready", lambda route: route.fulfill(status=503, json=starting))
        page.goto(f"{humming.base_url}/#talk")
        expect(page.locator("#talk-state")).to_have_text("The server is starting…")
        expect(page.locator("#talk-toggle")).to_be_disabled()
        expect(page.locator("#talk-send")).to_be_disabled()
        brand = page.locator(".brand").bounding_box()
        assert brand is not None
        assert brand["height"] < 50, "the name stays on one line beside a long status"
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.unroute("**/ready")
        expect(page.locator("#talk-state")).to_have_text("Press to talk")
        expect(page.locator("#talk-toggle")).to_be_enabled()


def test_what_cannot_be_spoken_is_told_in_words(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.route(
            "**/v1/audio/speech",
            lambda route: route.fulfill(
                status=200,
                headers={"X-Antiphon-Warning": 'left-out; count=1; characters="U+4E16"'},
                content_type="text/event-stream",
                body='data: {"type": "speech.audio.done", "usage": {}}\n\n',
            ),
        )
        page.click("#speak-start")
        expect(page.locator("[data-topic=speak]")).to_contain_text("世")
        page.click("a[data-view=watch]")
        expect(page.locator("[data-topic=speak]")).to_have_count(0)
