from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chunk_policy import ChunkPolicy, MovingAverage

POLICY = ChunkPolicy(first_units=8, maximum_units=64, growth=1.6, unit_seconds=0.0125)

policies = st.builds(
    lambda first, more, growth: ChunkPolicy(first, first + more, growth, 0.0125),
    st.integers(1, 32),
    st.integers(0, 128),
    st.floats(1.01, 4.0),
)
slacks = st.floats(-100.0, 100.0)
costs = st.floats(0.0, 1.0)


@given(policies, slacks, costs)
def test_the_first_chunk_is_small_whatever_the_slack(
    policy: ChunkPolicy, slack: float, cost: float
) -> None:
    assert policy.target_units(0, slack, cost) == policy.first_units


@given(policies)
def test_usual_sizes_are_those_that_chunks_grow_through(policy: ChunkPolicy) -> None:
    sizes = [policy.target_units(0, 100.0, 0.0)]
    while sizes[-1] < policy.maximum_units:
        sizes.append(policy.target_units(sizes[-1], 100.0, 0.0))
    assert policy.usual_units == sizes


@given(policies, st.integers(1, 200), slacks, costs)
def test_sizes_stay_in_their_bounds_and_never_jump(
    policy: ChunkPolicy, previous: int, slack: float, cost: float
) -> None:
    size = policy.target_units(previous, slack, cost)
    assert policy.first_units <= size <= policy.maximum_units
    assert size <= max(policy.first_units, previous * policy.growth + 1)


@given(policies, st.integers(1, 200), st.floats(0.0, 50.0), st.floats(1e-4, 0.1))
def test_a_chunk_is_ready_before_the_listener_runs_dry(
    policy: ChunkPolicy, previous: int, slack: float, cost: float
) -> None:
    size = policy.target_units(previous, slack, cost)
    assert size == policy.first_units or size * cost <= slack / 2 + 1e-9


@given(policies, st.integers(1, 200), costs, slacks, slacks)
def test_more_slack_never_means_a_smaller_chunk(
    policy: ChunkPolicy, previous: int, cost: float, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert policy.target_units(previous, less, cost) <= policy.target_units(previous, more, cost)


def test_with_much_slack_sizes_grow_up_to_the_largest() -> None:
    sizes = [0]
    for _ in range(8):
        sizes.append(POLICY.target_units(sizes[-1], slack=100.0, seconds_per_unit=0.001))
    assert sizes[1:] == [8, 13, 21, 34, 55, 64, 64, 64]


@pytest.mark.parametrize(
    ("first", "maximum", "growth"), [(0, 8, 1.5), (9, 8, 1.5), (8, 8, 1.0), (8, 8, 0.5)]
)
def test_impossible_policies_are_refused(first: int, maximum: int, growth: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        ChunkPolicy(first, maximum, growth, 0.0125)


@given(st.floats(0, 10), st.lists(st.floats(0.1, 10.0), min_size=1))
def test_a_moving_average_forgets_its_guess_and_stays_between_its_measurements(
    guess: float, measurements: list[float]
) -> None:
    average = MovingAverage(guess)
    for measurement in measurements:
        average.add(measurement)
    assert min(measurements) - 1e-9 <= average.value <= max(measurements) + 1e-9
