"""The shares in the time to an answer's first sound."""

from __future__ import annotations

import pytest

from app.realtime.shares import shares
from engine import RequestTimes, StageTimes


def times() -> RequestTimes:
    return RequestTimes(
        arrived=10.2,
        admitted=10.3,
        stages={
            "thinker": StageTimes(first_step=10.35, queue=0.05),
            "talker": StageTimes(first_step=10.7, queue=0.1),
            "code2wav": StageTimes(first_step=10.9, queue=0.0),
        },
        first_audio=11.0,
    )


def test_a_stage_has_the_time_until_the_next_one_could_begin() -> None:
    found = shares(times(), opened=10.0, sent=11.01)
    assert list(found) == ["ear", "admission", "thinker", "talker", "code2wav", "delivery"]
    assert list(found.values()) == pytest.approx([0.2, 0.1, 0.3, 0.3, 0.1, 0.01])
    assert sum(found.values()) == pytest.approx(1.01)


def test_parts_that_overlap_add_up_to_the_whole() -> None:
    overlapping = times()
    overlapping.stages["code2wav"].first_step = 10.5  # it began with what came before
    found = shares(overlapping, opened=10.0, sent=11.01)
    assert found["talker"] == 0
    assert sum(found.values()) == pytest.approx(1.01)


@pytest.mark.parametrize("missing", ["arrived", "admitted", "first_audio"])
def test_what_was_not_noted_is_not_guessed(missing: str) -> None:
    partial = times()
    setattr(partial, missing, None)
    assert shares(partial, opened=10.0, sent=11.0) == {}
