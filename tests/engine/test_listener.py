from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.listener import FIRST_AUDIO_SLACK, Listener


def test_who_waits_for_the_first_audio_goes_before_whom_it_came_after() -> None:
    older, newer = Listener(started=10.0), Listener(started=10.5)
    assert newer.slack(10.5) == pytest.approx(FIRST_AUDIO_SLACK)
    assert 0 < older.slack(10.5) < newer.slack(10.5)


def test_who_runs_dry_goes_before_who_has_heard_nothing() -> None:
    playing, waiting = Listener(started=0.0), Listener(started=0.0)
    playing.deliver(1.0, now=0.5)
    assert playing.slack(1.0) > waiting.slack(1.0)
    assert playing.slack(1.45) < waiting.slack(1.45)


def test_audio_in_time_is_no_underrun() -> None:
    listener = Listener(started=0.0)
    listener.deliver(1.0, now=0.2)
    listener.deliver(1.0, now=1.1)
    assert (listener.underruns, listener.silence) == (0, 0.0)
    assert listener.slack(1.1) == pytest.approx(1.1)


def test_late_audio_is_an_underrun_after_which_the_player_goes_on() -> None:
    listener = Listener(started=0.0)
    listener.deliver(1.0, now=0.0)
    listener.deliver(1.0, now=1.5)
    assert listener.underruns == 1
    assert listener.silence == pytest.approx(0.5)
    assert listener.slack(1.5) == pytest.approx(1.0)


def test_words_without_samples_do_not_start_the_player() -> None:
    listener = Listener(started=0.0)
    listener.deliver(0.0, now=0.0)
    assert listener.first_audio is None
    listener.deliver(1.0, now=5.0)
    assert listener.underruns == 0
    assert listener.slack(5.0) == pytest.approx(1.0)


@given(st.lists(st.tuples(st.floats(0.01, 3.0), st.floats(0.0, 3.0)), min_size=1))
def test_the_player_has_played_what_it_was_given(chunks: list[tuple[float, float]]) -> None:
    """Time that has passed = audio played + silence, whenever it is looked at."""
    listener = Listener(started=0.0)
    now = 0.0
    for seconds, wait in chunks:
        now += wait
        listener.deliver(seconds, now)
    assert listener.first_audio is not None
    end = now + listener.slack(now)
    assert end == pytest.approx(listener.first_audio + listener.delivered + listener.silence)
    assert listener.slack(now) >= chunks[-1][0] - 1e-9
    assert listener.underruns <= len(chunks) - 1
