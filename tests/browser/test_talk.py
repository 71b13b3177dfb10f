"""The Talk view: spoken and written turns, interruption, and the way back from a lost connection.

The ear is the real one where its models are; the answers come by rote.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser, Page, Playwright, expect

from app.settings import default_static_folder
from tests.app.realtime.doubles import RoteEngine
from tests.app.serving import Serving, serving
from tests.browser.browsing import FAKE_MICROPHONE, barriers, browsing, chromium, hide
from tests.ears import need_ear
from tests.voices import RATE, silence, synthesized

QUESTION = "What is the weather like today?"
AUDIBLE = "seen.reports.some((report) => report.level > 0.1)"
FINISHED = "seen.reports.some((r) => r.events.some((event) => event.type === 'finished'))"


@pytest.fixture(scope="module")
def rote() -> Generator[Serving]:
    """A server that does not listen and takes 50 ms for a word of 200 ms."""
    engine = RoteEngine(pace=0.05)
    with serving(engine, static_folder=default_static_folder(), ear=False) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture(scope="module")
def hearing() -> Generator[Serving]:
    """A server that listens."""
    need_ear()
    engine = RoteEngine(pace=0.03)
    with serving(engine, static_folder=default_static_folder(), ear=True) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the fake microphones hear."""
    folder = tmp_path_factory.mktemp("microphones")
    for name, before, text in (
        ("question", 1.5, QUESTION),
        ("interruption", 5.0, "Stop it please, I have another question."),
    ):
        sound = np.concatenate([silence(before), synthesized(text), silence(40.0)])
        soundfile.write(folder / f"{name}.wav", sound, RATE, subtype="PCM_16")
    return folder


def _microphone(recording: Path) -> tuple[str, ...]:
    return (*FAKE_MICROPHONE, f"--use-file-for-fake-audio-capture={recording}%noloop")


def _turns(page: Page) -> list[tuple[str, str]]:
    return [
        (turn.get_attribute("data-side") or "", turn.locator(".words:not(.pending)").inner_text())
        for turn in page.locator(".turn").all()
    ]


def _write(page: Page, text: str) -> None:
    page.fill("#talk-text", text)
    page.press("#talk-text", "Enter")


def test_a_spoken_question_is_transcribed_and_answered(
    playwright: Playwright, hearing: Serving, recordings: Path
) -> None:
    with (
        chromium(playwright, *_microphone(recordings / "question.wav")) as browser,
        browsing(browser, f"{hearing.base_url}/#talk") as watched,
    ):
        page = watched.page
        expect(page.locator("#talk-hint")).to_contain_text("microphone")
        page.check("input[value=silence]")
        page.click("#talk-toggle")
        watched.until(
            "seen.reports.some((r) => r.events.some((event) => event.type === 'finished'))", 60
        )
        expect(page.locator("#talk-state")).to_have_text("Listening")
        (you, question), (them, answer) = _turns(page)
        assert (you, them) == ("you", "them")
        assert "weather" in question.lower()
        assert answer == f"You said: {question}"
        lit = list(dict.fromkeys(watched.seen("lit")))
        words = answer.split()
        assert [word for word in words if word in lit] == lit, "in order"
        assert len(lit) >= len(words) - 1
        expect(page.locator(".turn[data-side=them] .word:not([data-heard=past])")).to_have_count(0)
        assert watched.seen("reports.at(-1).underruns") == 0
        finished = [e for e in watched.sound_events() if e["type"] == "finished"]
        assert finished[0]["seconds"] == pytest.approx(0.2 * len(words))


def test_speech_silences_the_answer_at_once(
    playwright: Playwright, hearing: Serving, recordings: Path
) -> None:
    with (
        chromium(playwright, *_microphone(recordings / "interruption.wav")) as browser,
        browsing(browser, f"{hearing.base_url}/#talk") as watched,
    ):
        page = watched.page
        page.check("input[value=silence]")
        page.click("#talk-toggle")
        expect(page.locator("#talk-state")).to_have_text("Listening")
        _write(page, "LONG")
        watched.until("seen.frames.some((f) => f.type === 'input_audio_buffer.speech_started')", 60)
        watched.until("seen.frames.some((f) => f.type === 'conversation.item.retrieved')")
        told = watched.seen("frames.find((f) => f.type.endsWith('speech_started')).at")
        flushed = next(e for e in watched.sound_events() if e["type"] == "flushed")
        assert flushed["at"] - told < 250
        after = watched.seen(
            f"reports.filter((r) => r.at > {flushed['at']} && r.level > 0).map((r) => r.at)"
        )
        answer_to_the_interruption = watched.seen(
            "frames.filter((f) => f.type === 'response.created').map((f) => f.at)"
        )[1:]
        limit = min(answer_to_the_interruption, default=float("inf"))
        assert [at for at in after if flushed["at"] + 60 < at < limit] == []
        turn = page.locator(".turn[data-side=them]").first
        expect(turn).to_contain_text("Interrupted")
        heard = turn.locator(".word:not(.unheard)").count()
        assert heard == pytest.approx(flushed["seconds"] / 0.2, abs=1.5)


def test_the_button_interrupts_and_the_server_learns_what_was_heard(
    browser: Browser, rote: Serving
) -> None:
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        _write(page, "LONG")
        watched.until(AUDIBLE)
        page.wait_for_timeout(700)
        page.click("#talk-interrupt")
        watched.until("seen.frames.some((f) => f.type === 'conversation.item.retrieved')")
        done = watched.seen("frames.filter((f) => f.type === 'response.done').length")
        assert done == 1
        turn = page.locator(".turn[data-side=them]")
        expect(turn).to_contain_text("Interrupted")
        flushed = next(e for e in watched.sound_events() if e["type"] == "flushed")
        heard = turn.locator(".word:not(.unheard)").count()
        assert heard == pytest.approx(flushed["seconds"] / 0.2, abs=1.5)
        expect(page.locator("#talk-state")).to_have_text("Write, or press to talk")
        _write(page, "and now")
        expect(page.locator(".turn[data-side=them]").last).to_contain_text("You said: and now")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_conversation(browser: Browser, rote: Serving, scheme: Any) -> None:
    options = {"color_scheme": scheme, "reduced_motion": "reduce"}
    with browsing(browser, f"{rote.base_url}/#talk", **options) as watched:
        page = watched.page
        page.click("#talk-toggle")
        _write(page, "LONG")
        watched.until(AUDIBLE)
        expect(page.locator(".notice")).to_contain_text("does not listen")
        assert barriers(page) == []
        page.click("#talk-interrupt")
        expect(page.locator(".turn .unheard").first).to_be_visible()
        page.click("#open-key")
        expect(page.locator("#key-dialog")).to_be_visible()
        assert barriers(page) == []


def test_the_newest_words_stay_in_view_unless_the_person_reads_further_up(
    browser: Browser, rote: Serving
) -> None:
    below = "(log) => log.scrollHeight - log.scrollTop - log.clientHeight"
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        log = page.locator("#talk-log")
        for number in range(4):
            _write(page, "LONG")
            expect(page.locator(".turn[data-side=them]")).to_have_count(number + 1)
        page.wait_for_timeout(1500)
        assert log.evaluate("(log) => log.scrollTop") > 0
        assert log.evaluate(below) < 2
        log.evaluate("(log) => { log.scrollTop = 0; }")
        page.wait_for_timeout(1500)
        assert log.evaluate("(log) => log.scrollTop") == 0


def test_a_lost_connection_comes_back_and_no_sample_is_lost(
    browser: Browser, rote: Serving
) -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        _write(page, text)
        watched.until(AUDIBLE)
        page.evaluate("seen.sockets[0].close(4999)")
        expect(page.locator("#talk-state")).to_have_text(re.compile("connection was lost"))
        watched.until(
            "seen.reports.some((r) => r.events.some((event) => event.type === 'finished'))"
        )
        assert watched.seen("sockets.length") == 2
        finished = next(e for e in watched.sound_events() if e["type"] == "finished")
        assert finished["seconds"] == pytest.approx(0.2 * (2 + len(text.split())))
        assert _turns(page) == [("you", text), ("them", f"You said: {text}")]
        _write(page, "again")
        expect(page.locator(".turn[data-side=them]").last).to_contain_text("You said: again")


def test_a_network_that_is_gone_is_said_and_waited_for(browser: Browser, rote: Serving) -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    with browsing(browser, f"{rote.base_url}/#talk", forgive=("net::", "WebSocket")) as watched:
        page = watched.page
        _write(page, text)
        watched.until(AUDIBLE)
        page.context.set_offline(True)
        state = page.locator("#talk-state")
        expect(state).to_have_text(re.compile("You are offline"))
        page.wait_for_timeout(1500)
        expect(state).to_have_text(re.compile("You are offline"))
        page.context.set_offline(False)
        watched.until(FINISHED)
        assert watched.seen("sockets.length") >= 2
        finished = next(e for e in watched.sound_events() if e["type"] == "finished")
        assert finished["seconds"] == pytest.approx(0.2 * (2 + len(text.split())))
        _write(page, "again")
        expect(page.locator(".turn[data-side=them]").last).to_contain_text("You said: again")


def test_a_conversation_goes_on_in_a_hidden_tab_and_the_tab_says_so(
    browser: Browser, rote: Serving
) -> None:
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        page.click("#talk-toggle")
        expect(page.locator("#talk-state")).to_have_text("Listening")
        hide(page, True)
        _write(page, "one two three four five six")
        watched.until(AUDIBLE)
        assert page.title().startswith("● Speaking")
        watched.until(FINISHED)
        assert watched.seen("reports.at(-1).underruns") == 0
        watched.until("document.title.startsWith('● Listening')")
        # A connection that was lost meanwhile is taken up as soon as somebody looks again.
        page.evaluate("seen.sockets[0].close(4999)")
        hide(page, False)
        watched.until("seen.sockets.length === 2 && seen.sockets[1].readyState === 1", 5)
        expect(page.locator("#talk-state")).to_have_text("Listening")


def test_the_microphone_can_be_muted_and_the_conversation_ended(
    browser: Browser, rote: Serving
) -> None:
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        page.click("#talk-toggle")
        state = page.locator("#talk-state")
        expect(state).to_have_text("Listening")
        assert page.title().startswith("● Listening")
        page.keyboard.press("m")
        expect(state).to_have_text("Muted")
        expect(page.locator("#talk-mute")).to_have_attribute("aria-pressed", "true")
        page.click("#talk-mute")
        expect(state).to_have_text("Listening")
        page.click("#talk-toggle")
        expect(state).to_have_text("Press to talk")
        expect(page.locator(".notice")).to_contain_text("does not listen")


def test_a_microphone_that_goes_away_is_replaced(browser: Browser, rote: Serving) -> None:
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        page.click("#talk-toggle")
        expect(page.locator("#talk-state")).to_have_text("Listening")
        page.evaluate("seen.microphones[0].dispatchEvent(new Event('ended'))")
        expect(page.locator("[data-topic=microphone]")).to_contain_text("Now listening with")
        assert watched.seen("microphones.length") == 2
        expect(page.locator("#talk-state")).to_have_text("Listening")


def test_the_person_can_say_that_the_turn_is_over(
    playwright: Playwright, hearing: Serving, recordings: Path
) -> None:
    with (
        chromium(playwright, *_microphone(recordings / "question.wav")) as browser,
        browsing(browser, f"{hearing.base_url}/#talk") as watched,
    ):
        page = watched.page
        page.check("input[value=manual]")
        page.click("#talk-toggle")
        expect(page.locator("#talk-state")).to_have_text("Listening")
        page.wait_for_timeout(5000)
        assert page.locator(".turn").count() == 0, "nothing is decided for the person"
        page.click("#talk-commit")
        expect(page.locator(".turn[data-side=you]")).to_contain_text("weather")
        expect(page.locator(".turn[data-side=them]")).to_contain_text("You said:")


def test_a_server_that_has_forgotten_the_conversation_is_told_it(browser: Browser) -> None:
    folder = default_static_folder()
    engine = RoteEngine()
    with ExitStack() as stack:
        with serving(RoteEngine(), static_folder=folder, ear=False) as first:  # type: ignore[arg-type]
            port = int(first.base_url.rpartition(":")[2])
            opened = browsing(browser, f"{first.base_url}/#talk", forgive=("WebSocket", "net::"))
            page = stack.enter_context(opened).page
            _write(page, "my name is Ada")
            expect(page.locator(".turn[data-side=them]")).to_contain_text("Ada")
        stack.enter_context(serving(engine, static_folder=folder, ear=False, port=port))  # type: ignore[arg-type]
        expect(page.locator(".notice")).to_contain_text("told again", timeout=40_000)
        _write(page, "what is my name")
        expect(page.locator(".turn[data-side=them]").last).to_contain_text("what is")
    chat = engine.requests[-1].chat
    assert chat is not None
    assert "my name is Ada" in [message.text for message in chat.messages]


def test_a_denied_microphone_is_explained_and_writing_still_works(
    playwright: Playwright, rote: Serving
) -> None:
    with (
        chromium(playwright, "--deny-permission-prompts") as browser,
        browsing(browser, f"{rote.base_url}/#talk") as watched,
    ):
        page = watched.page
        page.click("#talk-toggle")
        expect(page.locator(".notice")).to_contain_text(re.compile("microphone", re.IGNORECASE))
        expect(page.locator("#talk-state")).to_have_text("Press to talk")
        _write(page, "hello")
        expect(page.locator(".turn[data-side=them]")).to_contain_text("You said: hello")


def test_a_server_that_wants_a_key_gets_it(browser: Browser) -> None:
    engine = RoteEngine(pace=0.02)
    folder = default_static_folder()
    with (
        serving(engine, static_folder=folder, ear=False, api_keys="secret") as locked,  # type: ignore[arg-type]
        browsing(
            browser, f"{locked.base_url}/#talk", forgive=("401", "WebSocket connection")
        ) as watched,
    ):
        page = watched.page
        dialog = page.locator("#key-dialog")
        expect(dialog).to_be_visible()
        page.fill("#key-value", "wrong")
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("not correct")
        page.keyboard.press("Escape")
        _write(page, "hello")
        expect(dialog).to_be_visible(timeout=15_000)
        page.fill("#key-value", "secret")
        page.get_by_role("button", name="Save").click()
        _write(page, "hello")
        expect(page.locator(".turn[data-side=them]").last).to_contain_text("You said: hello")
        page.reload()
        expect(page.locator("#talk-voice option")).to_have_count(2)
        assert "secret" not in page.content()


def test_a_real_conversation_from_the_microphone_to_the_ear(
    playwright: Playwright, conversing_server: str, recordings: Path
) -> None:
    """Nothing by rote: the real ear, Thinker, Talker and Code2Wav."""
    need_ear()
    with (
        chromium(playwright, *_microphone(recordings / "question.wav")) as browser,
        browsing(browser, f"{conversing_server}/#talk") as watched,
    ):
        page = watched.page
        page.check("input[value=silence]")
        page.click("#talk-toggle")
        watched.until(AUDIBLE, 120)
        page.wait_for_timeout(600)
        pressed = page.evaluate(
            "(document.getElementById('talk-interrupt').click(), performance.now())"
        )
        watched.until("seen.frames.some((f) => f.type === 'conversation.item.retrieved')")
        flushed = next(e for e in watched.sound_events() if e["type"] in ("flushed", "finished"))
        if flushed["type"] == "flushed":
            assert flushed["at"] - pressed < 500, "at once, on a machine that computes meanwhile"
        (you, question), (them, answer) = _turns(page)[:2]
        assert (you, them) == ("you", "them")
        assert "weather" in question.lower()
        assert len(answer) > 1
        page.click("a[data-view=watch]")
        track = page.locator("#timelines .track").first
        figure = r"[\d.,]+ (?:ms|s)"
        parts = rf"Ear {figure}.*Thinker {figure}, Talker {figure}, Code2Wav {figure}.*Played"
        expect(track).to_have_attribute("aria-label", re.compile(parts))
        for stage in ("Thinker", "Talker", "Code2Wav"):
            row = page.locator("#stages tbody tr", has_text=stage)
            expect(row.locator("td").nth(1)).to_have_text(re.compile(r"[1-9]"))


def test_a_failed_answer_is_said(browser: Browser, rote: Serving) -> None:
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        _write(watched.page, "FAIL")
        expect(watched.page.locator(".turn[data-side=them]")).to_contain_text("fell over")


def test_a_server_that_only_speaks_says_so(browser: Browser, humming: Serving) -> None:
    with browsing(browser, f"{humming.base_url}/#talk") as watched:
        _write(watched.page, "hello")
        expect(watched.page.locator("[data-topic=talk]")).to_contain_text("only speaks")


def test_a_text_that_becomes_shorter_does_not_stop_the_log_from_following(
    browser: Browser, rote: Serving
) -> None:
    with browsing(browser, f"{rote.base_url}/#talk") as watched:
        page = watched.page
        for number in range(4):
            _write(page, "LONG")
            expect(page.locator(".turn[data-side=them]")).to_have_count(number + 1)
        page.wait_for_timeout(500)
        # In one task, so that the browser does not tell of the scrolling in between.
        page.evaluate(
            """() => {
                const log = document.getElementById('talk-log');
                log.firstElementChild.nextElementSibling.style.display = 'none';
                return log.scrollTop;
            }"""
        )
        page.wait_for_timeout(1500)
        log = page.locator("#talk-log")
        below = "(log) => log.scrollHeight - log.scrollTop - log.clientHeight"
        assert log.evaluate(below) < 2
