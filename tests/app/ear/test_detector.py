"""Turns from judgements about frames, without any model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ear import FRAME
from app.ear.detector import MILLISECOND, Finding, Found, TurnDetector, TurnRules

RULES = TurnRules()


def run(
    pattern: str, rules: TurnRules = RULES, *, guarded: bool = False
) -> tuple[list[Found], TurnDetector]:
    """Each character is a frame of 32 ms: `#` speech, `.` silence, `?` in between."""
    detector = TurnDetector(rules)
    found = []
    for number, mark in enumerate(pattern, 1):
        probability = {"#": 0.95, ".": 0.02, "?": 0.45}[mark]
        found += detector.frame(number * FRAME, probability, guarded=guarded)
    return found, detector


def findings(pattern: str, rules: TurnRules = RULES, *, guarded: bool = False) -> list[Finding]:
    return [one.finding for one in run(pattern, rules, guarded=guarded)[0]]


def test_a_turn_begins_with_its_padding_and_ends_after_the_silence() -> None:
    found, _ = run("." * 20 + "#" * 20 + "." * 20)
    assert [one.finding for one in found] == [Finding.BEGUN, Finding.PAUSED, Finding.ENDED]
    assert found[0].position == 20 * FRAME - 300 * MILLISECOND
    assert found[2].position == 56 * FRAME, "the first frame that makes 500 ms of silence"


def test_a_click_is_no_turn() -> None:
    assert findings("." * 10 + "#" + "." * 30) == []


def test_a_pause_is_not_the_end() -> None:
    expected = [Finding.BEGUN, Finding.PAUSED, Finding.RESUMED, Finding.PAUSED, Finding.ENDED]
    assert findings("#" * 10 + "." * 10 + "#" * 10 + "." * 20) == expected


def test_sound_that_stops_coming_is_silence() -> None:
    _, detector = run("." * 20 + "#" * 20 + "." * 3)
    heard = 43 * FRAME
    assert detector.absent(heard, 50 * MILLISECOND) == []
    assert detector.absent(heard, 200 * MILLISECOND) == [Found(Finding.PAUSED, heard)]
    assert detector.absent(heard, 300 * MILLISECOND) == []
    assert detector.absent(heard, 500 * MILLISECOND) == [Found(Finding.ENDED, heard)]
    assert detector.absent(heard, 900 * MILLISECOND) == [], "there is no turn any more"


def test_between_the_thresholds_nothing_changes() -> None:
    assert findings("?" * 50) == []
    assert findings("#" * 10 + "?" * 50) == [Finding.BEGUN]


@pytest.mark.parametrize(("frames", "interrupts"), [(10, False), (12, False), (13, True)])
def test_only_longer_speech_interrupts_an_answer(frames: int, interrupts: bool) -> None:
    found = findings("." * 10 + "#" * frames + "." * 10, guarded=True)
    assert (Finding.BEGUN in found) == interrupts


def test_short_sounds_do_not_add_up_to_an_interruption() -> None:
    assert findings(("#" * 8 + "." * 8) * 10, guarded=True) == []


def test_an_answer_that_is_heard_makes_the_detector_stricter() -> None:
    detector = TurnDetector(RULES)
    loud = [detector.frame(n * FRAME, 0.6, guarded=True) for n in range(1, 60)]
    assert not any(loud)
    assert any(detector.frame(n * FRAME, 0.6, guarded=False) for n in range(60, 70))


def test_a_turn_that_sounds_finished_ends_in_its_pause() -> None:
    rules = replace(RULES, semantic=True, silence=4000 * MILLISECOND)
    found, detector = run("#" * 20 + "." * 10, rules)
    assert [one.finding for one in found] == [Finding.BEGUN, Finding.PAUSED]
    assert detector.in_pause
    assert [one.finding for one in detector.finish(30 * FRAME)] == [Finding.ENDED]
    assert detector.finish(30 * FRAME) == [], "an answer that comes twice ends one turn"
    assert not detector.in_turn


def test_an_answer_that_comes_after_the_pause_changes_nothing() -> None:
    rules = replace(RULES, semantic=True, silence=4000 * MILLISECOND)
    _, detector = run("#" * 20 + "." * 10 + "#" * 5, rules)
    assert detector.finish(35 * FRAME) == []
    assert detector.in_turn


@given(st.text(alphabet="#.?", max_size=300), st.booleans())
def test_every_turn_that_begins_ends_once_and_in_order(pattern: str, guarded: bool) -> None:
    found, detector = run(pattern + "." * 20, guarded=guarded)
    open_turn = paused = False
    last = 0
    for one in found:
        match one.finding:
            case Finding.BEGUN:
                assert not open_turn
                open_turn, paused = True, False
            case Finding.PAUSED:
                assert open_turn
                assert not paused
                paused = True
            case Finding.RESUMED:
                assert paused
                paused = False
            case Finding.ENDED:
                assert open_turn
                open_turn = False
                assert one.position >= last
                last = one.position
    assert not open_turn
    assert not detector.in_turn
