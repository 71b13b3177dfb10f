"""The Speak view: a text is heard, its words light up, the sound can be had as a file."""

from __future__ import annotations

import io
import re

import pytest
import soundfile
from playwright.sync_api import Browser, expect

from tests.app.decoding import decode
from tests.app.serving import Serving
from tests.browser.browsing import browsing

TEXT = "An antiphon has two voices: one calls, and the other answers."
WORDS = TEXT.split()
SECONDS = 0.2 * len(WORDS)

FINISHED = "seen.reports.some((report) => report.events.some((event) => event.type === 'finished'))"


def test_words_light_up_in_order_while_the_text_is_heard(
    browser: Browser, humming: Serving
) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", TEXT)
        page.click("#speak-start")
        watched.until(FINISHED)
        expect(page.locator("#speak-start-text")).to_have_text("Speak again")
        lit = list(dict.fromkeys(watched.seen("lit")))
        assert [word for word in WORDS if word in lit] == lit, "in order"
        assert len(lit) >= len(WORDS) - 1, "each of them"
        expect(page.locator("#speak-reading .word:not([data-heard=past])")).to_have_count(0)
        started, finished = watched.sound_events()
        assert (started["type"], finished["type"]) == ("started", "finished")
        assert finished["seconds"] == pytest.approx(SECONDS)
        assert max(watched.seen("reports.map((report) => report.level)")) > 0.2
        assert watched.seen("reports.at(-1).underruns") == 0
        expect(page.locator("#speak-heard")).to_have_text(f"{SECONDS:.1f} of {SECONDS:.1f} s")


@pytest.mark.parametrize("audio_format", ["wav", "mp3", "pcm"])
def test_what_was_heard_can_be_saved(browser: Browser, humming: Serving, audio_format: str) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", TEXT)
        page.select_option("#speak-format", audio_format)
        page.click("#speak-start")
        watched.until(FINISHED)
        with page.expect_download() as download:
            page.click("#speak-download")
        assert download.value.suggested_filename == f"speech.{audio_format}"
        data = download.value.path().read_bytes()
    if audio_format == "mp3":
        samples, rate = decode(data)
        assert len(samples) / rate == pytest.approx(SECONDS, abs=0.15)
    elif audio_format == "wav":
        samples, rate = soundfile.read(io.BytesIO(data))
        assert len(samples) / rate == pytest.approx(SECONDS)
    else:
        assert len(data) / 48_000 == pytest.approx(SECONDS)


def test_stopping_silences_at_once_and_leaves_the_server_idle(
    browser: Browser, humming: Serving
) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", "word " * 400)
        page.click("#speak-start")
        watched.until("seen.reports.some((report) => report.level > 0.1)")
        pressed = page.evaluate(
            "(document.getElementById('speak-stop').click(), performance.now())"
        )
        watched.until("seen.reports.at(-1).events !== undefined && seen.reports.at(-1).level === 0")
        loud = watched.seen(
            "reports.filter((report) => report.level > 0).map((report) => report.at)"
        )
        assert max(loud) - pressed < 250
        page.wait_for_timeout(300)
        assert watched.seen("reports.at(-1).level") == 0
        assert not humming.engine.live, "the server stopped too"


def test_a_device_that_pauses_the_sound_is_said_and_goes_on(
    browser: Browser, humming: Serving
) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", TEXT)
        page.click("#speak-start")
        watched.until("seen.reports.some((report) => report.level > 0.1)")
        page.evaluate("seen.contexts[0].suspend()")
        notice = page.locator("[data-topic=sound]")
        expect(notice).to_contain_text("paused the sound")
        notice.get_by_role("button", name="Go on").click()
        watched.until(FINISHED)
        expect(notice).to_have_count(0)
        assert watched.seen("contexts.length") == 1, "one for the whole page"
        assert watched.sound_events()[-1]["seconds"] == pytest.approx(SECONDS)


def test_a_refusal_is_said_and_can_be_tried_again(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak", forgive=("503",)) as watched:
        page = watched.page
        page.fill("#speak-text", "BUSY")
        page.click("#speak-start")
        notice = page.locator(".notice")
        expect(notice).to_contain_text("waiting line is full")
        expect(page.locator("#speak-text")).to_be_visible()
        page.fill("#speak-text", "One two")
        notice.get_by_role("button", name="Try again").click()
        watched.until(FINISHED)
        expect(notice).to_have_count(0)


def test_a_failure_in_the_middle_is_said(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        watched.page.fill("#speak-text", "one two three FAIL four")
        watched.page.click("#speak-start")
        expect(watched.page.locator(".notice")).to_contain_text("fell over")


def test_the_program_asks_for_what_the_page_asks(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", "It's here")
        page.select_option("#speak-voice", "high")
        page.select_option("#speak-format", "flac")
        program = page.locator("#program-text")
        expect(program).to_contain_text(f"curl {humming.base_url}/v1/audio/speech")
        expect(program).to_contain_text('"voice":"high"')
        expect(program).to_contain_text("speech.flac")
        page.click("#program-python")
        expect(program).to_contain_text('input="It\'s here"')
        compile(program.inner_text(), "program", "exec")


def test_watching_shows_what_was_measured(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#speak") as watched:
        page = watched.page
        page.fill("#speak-text", TEXT)
        page.click("#speak-start")
        watched.until(FINISHED)
        page.click("a[data-view=watch]")
        tiles = page.locator("#watch-tiles")
        expect(tiles).to_contain_text(re.compile(r"First sound, last\s*[\d.,]+\s*ms"))
        expect(page.locator("#timelines > li")).to_have_count(1)
        label = page.locator("#timelines .track").get_attribute("aria-label")
        assert label is not None
        figure = r"[\d.,]+ ms"
        assert re.search(rf"Hum {figure}.*Sending.*Played {figure}", label), label
        expect(page.locator("#gaps")).to_have_attribute("aria-label", re.compile("Gaps in"))
        expect(page.locator("#stages tbody tr")).to_have_count(1)
        expect(page.locator("#load-tiles")).to_contain_text("GiB")


def test_the_embedded_voice_is_heard(browser: Browser, running_server: str) -> None:
    """The whole server with its real models, to the last word."""
    with browsing(browser, f"{running_server}/#speak") as watched:
        page = watched.page
        expect(page.locator("#server-status")).to_have_attribute("data-state", "ready")
        page.fill("#speak-text", TEXT)
        page.click("#speak-start")
        watched.until(FINISHED, 60)
        lit = list(dict.fromkeys(watched.seen("lit")))
        assert [word for word in WORDS if word in lit] == lit
        assert len(lit) >= len(WORDS) // 2, "a busy machine may skip short words"
        expect(page.locator("#speak-reading .word:not([data-heard=past])")).to_have_count(0)
        page.click("a[data-view=watch]")
        expect(page.locator("#stages")).to_contain_text("Talker")
        expect(page.locator("#stages")).to_contain_text("Code2Wav")
        label = page.locator("#timelines .track").get_attribute("aria-label")
        assert label is not None
        figure = r"[\d.,]+ (?:ms|s)"
        parts = rf"Admission {figure}, Talker {figure}, Code2Wav {figure}.*Network.*Played {figure}"
        assert re.match(parts, label), label
        talker = page.locator("#stages tbody tr", has_text="Talker")
        steps = int(talker.locator("td").nth(1).inner_text().replace(",", ""))
        assert steps > 50, "each frame of the utterance is a step of this very request"
