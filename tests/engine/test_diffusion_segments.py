from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.deploy_config import DiffusionDeployment
from engine.diffusion_cache import StepCacheCount, StepCachePolicy
from engine.diffusion_segments import Segment, SegmentPolicy

POLICY = SegmentPolicy(12, first_blocks=1, maximum_blocks=4, growth=1.5, look_ahead_blocks=1)

policies = st.builds(
    lambda block, first, more, growth, ahead: SegmentPolicy(
        block, first, first + more, growth, ahead
    ),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 6),
    st.floats(1.0, 3.0),
    st.none() | st.integers(0, 4),
)


def cut(policy: SegmentPolicy, length: int) -> list[Segment]:
    segments: list[Segment] = []
    start = 0
    while segment := policy.following(len(segments), start, length, closed=True):
        segments.append(segment)
        start = segment.end
    return segments


def test_sizes_grow_to_the_largest() -> None:
    assert [POLICY.keep_units(i) for i in range(5)] == [12, 24, 36, 48, 48]
    assert POLICY.largest_units == 60
    assert replace(POLICY, look_ahead_blocks=None).largest_units is None


def test_usual_steps_have_the_smallest_or_the_largest_segments() -> None:
    assert POLICY.usual_blocks([1, 2, 4], 200) == [2, 4, 5, 8, 10, 16]
    assert POLICY.usual_blocks([2], 1) == [4, 5]
    assert replace(POLICY, look_ahead_blocks=None).usual_blocks([1], 200) == []


@given(policies, st.integers(0, 200))
def test_segments_cover_the_input_once_and_look_ahead_within_it(
    policy: SegmentPolicy, length: int
) -> None:
    segments = cut(policy, length)
    assert sum(segment.keep for segment in segments) == length
    for segment, after in itertools.pairwise(segments):
        assert after.start == segment.end
        assert segment.keep % policy.block_units == 0
    for segment in segments:
        assert segment.start + segment.units <= length
        if policy.look_ahead_blocks is not None:
            wanted = policy.look_ahead_blocks * policy.block_units
            assert segment.look_ahead == min(wanted, length - segment.end)


@given(policies, st.integers(0, 200), st.integers(0, 200))
def test_a_segment_that_begins_early_is_the_one_of_the_whole_input(
    policy: SegmentPolicy, known: int, more: int
) -> None:
    for index, whole in enumerate(cut(policy, known + more)):
        early = policy.following(index, whole.start, known, closed=False)
        assert early in (None, whole)
        if (
            policy.look_ahead_blocks is not None
            and whole.start
            + policy.keep_units(index)
            + policy.look_ahead_blocks * policy.block_units
            <= known
        ):
            assert early == whole


def test_results_are_reused_below_the_change_and_not_for_ever() -> None:
    policy = StepCachePolicy(largest_change=0.1, longest_run=2)
    assert policy.reuses(0.05, 0)
    assert policy.reuses(0.05, 1)
    assert not policy.reuses(0.05, 2)
    assert not policy.reuses(0.1, 0)
    assert not policy.reuses(float("inf"), 0)
    assert StepCacheCount(3, 1).share == 0.25
    assert StepCacheCount().share == 0.0


def test_a_first_segment_above_the_largest_is_refused() -> None:
    with pytest.raises(ValidationError, match="first_blocks"):
        DiffusionDeployment(first_blocks=5, maximum_blocks=4)
