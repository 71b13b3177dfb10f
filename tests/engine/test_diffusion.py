"""The runtime of diffusion stages with a tiny denoiser: invariants 5, 6, 9, 10 and 11."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import ConfigurationError, SpeechParameters
from engine.deploy_config import DiffusionDeployment, StageDeployment, StepCacheDeployment
from engine.diffusion import DiffusionOutput, DiffusionReplica
from engine.diffusion_module import DenoisingItem, DiffusionInput
from engine.diffusion_segments import Segment

BLOCK = 4
EVALUATIONS = 5
MUCH = 100.0
UNREADABLE, UNBEGINNABLE, UNFINISHABLE, BREAKING = -1, -2, -3, -4
"""Input at which a part of the denoiser raises."""

DEPLOYMENT = StageDeployment(
    max_requests=3, input_limit=32, diffusion=DiffusionDeployment(maximum_blocks=2)
)
WHOLE = DEPLOYMENT.model_copy(update={"diffusion": DiffusionDeployment(look_ahead_blocks=None)})


class OddError(Exception):
    """What no list of expected exceptions names."""


@dataclass
class State:
    codes: list[int] = field(default_factory=list)
    carried: float = 0.0


@dataclass
class Trajectory:
    codes: np.ndarray
    values: np.ndarray
    velocity: np.ndarray | None = None


@dataclass
class Denoiser:
    """Relaxes to the codes; each unit feels the mean of its segment and of what came before."""

    block_units: int = BLOCK
    evaluations: int = EVALUATIONS
    change: float = 1.0
    batches: list[list[int]] = field(default_factory=list)

    def open(self, parameters: SpeechParameters) -> State:
        return State()

    def accept(self, state: State, payload: DiffusionInput) -> None:
        if UNREADABLE in payload.data:
            raise ValueError("the code is out of range")
        state.codes.extend(payload.data)

    def begin(self, state: State, segment: Segment) -> Trajectory:
        codes = np.array(state.codes[segment.start : segment.start + segment.units], float)
        if UNBEGINNABLE in codes:
            raise OddError("cannot begin")
        return Trajectory(codes, np.sin(np.arange(len(codes)) + segment.start))

    def changes(self, items: list[DenoisingItem]) -> list[float]:
        return [np.inf if i.trajectory.velocity is None else self.change for i in items]

    def evaluate(self, items: list[DenoisingItem]) -> None:
        self.batches.append([item.evaluation for item in items])
        for item in items:
            trajectory = item.trajectory
            if BREAKING in trajectory.codes:
                raise OddError("the replica breaks")
            pull = np.mean(trajectory.values) + item.state.carried + item.evaluation
            trajectory.velocity = trajectory.codes - trajectory.values + 0.01 * pull
        self.reuse(items)

    def reuse(self, items: list[DenoisingItem]) -> None:
        for item in items:
            item.trajectory.values = item.trajectory.values + 0.2 * item.trajectory.velocity

    def finish(self, state: State, segment: Segment, trajectory: Trajectory) -> np.ndarray:
        if UNFINISHABLE in trajectory.codes[: segment.keep]:
            raise OddError("not finite")
        values = trajectory.values[: segment.keep]
        state.carried = float(values[-1])
        return values


@pytest.fixture
def denoiser() -> Denoiser:
    return Denoiser()


@pytest.fixture
def replica(denoiser: Denoiser) -> DiffusionReplica:
    return DiffusionReplica.of(denoiser, DEPLOYMENT)


def offer(replica: DiffusionReplica, name: str, codes: list[int], close: bool = True) -> None:
    if name not in replica.requests:
        replica.add(name, SpeechParameters())
    for code in codes:
        replica.offer(name, DiffusionInput(1, [code]))
    if close:
        replica.close_input(name)


def run(replica: DiffusionReplica, slacks: dict[str, float] | None = None) -> dict[str, np.ndarray]:
    """Steps until nothing is due; what each request got, joined."""
    results: dict[str, list[np.ndarray]] = {}
    while replica.ready({}):
        for output in replica.step(slacks or {}):
            if output.output is not None:
                results.setdefault(output.request_id, []).append(output.output)
    return {name: np.concatenate(parts) for name, parts in results.items()}


def alone(codes: list[int], deployment: StageDeployment = DEPLOYMENT) -> np.ndarray:
    replica = DiffusionReplica.of(Denoiser(), deployment)
    offer(replica, "alone", codes)
    return run(replica)["alone"]


def test_a_segment_begins_only_when_its_look_ahead_is_known(replica: DiffusionReplica) -> None:
    offer(replica, "a", list(range(2 * BLOCK - 1)), close=False)
    assert replica.ready({}) == []
    assert replica.step({}) == []
    offer(replica, "a", [7], close=False)
    outputs = [output for _ in range(EVALUATIONS) for output in replica.step({})]
    (output,) = outputs
    assert output.output is not None
    assert len(output.output) == BLOCK
    assert not output.finished


def test_requests_at_different_steps_share_a_batch(
    replica: DiffusionReplica, denoiser: Denoiser
) -> None:
    offer(replica, "early", list(range(BLOCK)))
    replica.step({})
    replica.step({})
    offer(replica, "late", list(range(BLOCK)))
    replica.step({})
    assert denoiser.batches == [[0], [1], [2, 0]]


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.lists(st.integers(1, 12), min_size=1),
    st.sampled_from([DEPLOYMENT, WHOLE.model_copy(update={"input_limit": 64})]),
)
def test_invariant_09_the_samples_do_not_depend_on_how_input_arrives(
    codes: list[int], arrivals: list[int], deployment: StageDeployment
) -> None:
    replica = DiffusionReplica.of(Denoiser(), deployment)
    parts: list[np.ndarray] = []
    left, turn = codes, 0
    while left:
        count = arrivals[turn % len(arrivals)]
        offer(replica, "a", left[:count], close=False)
        left, turn = left[count:], turn + 1
        if turn % 2:
            parts.extend(run(replica).values())
    replica.close_input("a")
    parts.extend(run(replica).values())
    assert np.array_equal(np.concatenate(parts), alone(codes, deployment))
    assert replica.requests == {}


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=24), min_size=2, max_size=6),
    st.lists(st.integers(0, 8), min_size=6, max_size=6),
)
def test_invariant_10_a_request_is_the_same_alone_and_among_others(
    requests: list[list[int]], joins: list[int]
) -> None:
    replica = DiffusionReplica.of(Denoiser(), DEPLOYMENT)
    results: dict[str, list[np.ndarray]] = {}
    waiting = sorted(zip(joins, range(len(requests)), strict=False))
    turn = 0
    while waiting or replica.ready({}):
        while waiting and waiting[0][0] <= turn:
            index = waiting.pop(0)[1]
            offer(replica, str(index), requests[index])
        slacks = {str(index): float((index * 7 + turn) % 5) for index in range(len(requests))}
        for output in replica.step(slacks):
            if output.output is not None:
                results.setdefault(output.request_id, []).append(output.output)
        turn += 1
    for index, codes in enumerate(requests):
        assert np.array_equal(np.concatenate(results[str(index)]), alone(codes))


def test_invariant_05_a_request_without_credit_is_not_stepped_and_keeps_its_place(
    replica: DiffusionReplica, denoiser: Denoiser
) -> None:
    offer(replica, "held", list(range(6)))
    offer(replica, "free", list(range(6)))
    replica.step({})
    replica.set_credit("held", False)
    assert replica.ready({}) == ["free"]
    run(replica)
    assert replica.requests["held"].evaluation == 1
    assert denoiser.batches[1:]
    assert all(len(batch) == 1 for batch in denoiser.batches[1:])
    replica.set_credit("held", True)
    assert np.array_equal(run(replica)["held"], alone(list(range(6))))


def test_invariant_05_no_more_input_is_wanted_than_the_limit(replica: DiffusionReplica) -> None:
    replica.add("a", SpeechParameters())
    taken = 0
    while replica.wants_input("a"):
        replica.offer("a", DiffusionInput(1, [0]))
        taken += 1
    assert taken == DEPLOYMENT.input_limit
    run(replica)
    assert replica.wants_input("a")


@pytest.mark.parametrize("after", range(EVALUATIONS + 2))
def test_invariant_06_a_cancelled_request_leaves_between_two_steps(
    replica: DiffusionReplica, denoiser: Denoiser, after: int
) -> None:
    codes = list(range(12))
    offer(replica, "gone", codes)
    offer(replica, "stays", codes)
    parts = [o.output for _ in range(after) for o in replica.step({}) if o.request_id == "stays"]
    replica.abort("gone")
    replica.abort("gone")
    assert list(replica.requests) == ["stays"]
    before = len(denoiser.batches)
    parts.extend(run(replica).values())
    assert all(len(batch) == 1 for batch in denoiser.batches[before:])
    assert np.array_equal(np.concatenate(parts), alone(codes))


@pytest.mark.parametrize("code", [UNBEGINNABLE, UNFINISHABLE])
def test_invariant_11_a_requests_own_fault_ends_it_alone(
    replica: DiffusionReplica, code: int
) -> None:
    offer(replica, "well", [1] * 8)
    offer(replica, "ill", [1] * 5 + [code] + [1] * 2)
    outputs: list[DiffusionOutput] = []
    while replica.ready({}):
        outputs.extend(replica.step({}))
    (failed,) = [output for output in outputs if output.fault is not None]
    assert (failed.request_id, failed.finished) == ("ill", True)
    with pytest.raises(OddError):
        _ = failed.output
    parts = [o.output for o in outputs if o.request_id == "well"]
    assert np.array_equal(np.concatenate(parts), alone([1] * 8))
    assert replica.requests == {}


def test_invariant_11_input_that_cannot_be_denoised_is_refused_as_it_comes(
    replica: DiffusionReplica,
) -> None:
    replica.add("a", SpeechParameters())
    with pytest.raises(ValueError, match="out of range"):
        replica.offer("a", DiffusionInput(1, [UNREADABLE]))
    assert replica.requests["a"].known == 0


def test_what_breaks_the_batch_is_raised_to_the_runtime(replica: DiffusionReplica) -> None:
    offer(replica, "a", [BREAKING])
    with pytest.raises(OddError):
        replica.step({})


def test_the_most_urgent_take_part_first_as_far_as_the_batch_has_room(
    denoiser: Denoiser,
) -> None:
    diffusion = DiffusionDeployment(maximum_blocks=2, step_units=3 * BLOCK)
    replica = DiffusionReplica.of(denoiser, DEPLOYMENT.model_copy(update={"diffusion": diffusion}))
    for name in "abcd":
        offer(replica, name, [1] * BLOCK if name != "c" else [1] * 2 * BLOCK)

    def chosen(slacks: dict[str, float]) -> list[str]:
        return [r.request_id for r in replica.scheduler.schedule(replica.requests, slacks)]

    assert chosen({"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.5}) == ["d", "c"]
    assert chosen({"a": 0.0, "b": 1.0, "c": 9.0, "d": 0.5}) == ["a", "d", "b"]
    small = DEPLOYMENT.model_copy(update={"diffusion": DiffusionDeployment(step_units=1)})
    replica = DiffusionReplica.of(denoiser, small)
    offer(replica, "large", [1] * BLOCK)
    offer(replica, "other", [1] * BLOCK)
    assert chosen({"large": 0.0, "other": 1.0}) == ["large"]


def test_an_input_that_closes_empty_or_late_ends_without_a_payload(
    replica: DiffusionReplica,
) -> None:
    offer(replica, "empty", [])
    assert replica.step({}) == [DiffusionOutput("empty", finished=True)]


def test_an_empty_end_after_the_last_segment_is_told() -> None:
    diffusion = DiffusionDeployment(look_ahead_blocks=0)
    replica = DiffusionReplica.of(
        Denoiser(), DEPLOYMENT.model_copy(update={"diffusion": diffusion})
    )
    offer(replica, "a", [1] * BLOCK, close=False)
    assert len(run(replica)["a"]) == BLOCK
    replica.close_input("a")
    assert replica.step({}) == [DiffusionOutput("a", finished=True)]
    assert replica.requests == {}


def test_in_one_piece_nothing_begins_before_the_end_and_too_much_is_refused(
    denoiser: Denoiser,
) -> None:
    replica = DiffusionReplica.of(denoiser, WHOLE)
    offer(replica, "a", [1] * WHOLE.input_limit, close=False)
    assert replica.ready({}) == []
    assert replica.wants_input("a")
    with pytest.raises(ValueError, match="input_limit"):
        replica.offer("a", DiffusionInput(1, [1]))
    replica.close_input("a")
    run(replica)
    assert len(denoiser.batches) == EVALUATIONS


def test_the_cache_is_off_unless_it_is_asked_for(
    replica: DiffusionReplica, denoiser: Denoiser
) -> None:
    denoiser.change = 0.0
    offer(replica, "a", [1] * BLOCK)
    run(replica)
    assert len(denoiser.batches) == EVALUATIONS
    assert (replica.count.computed, replica.count.reused) == (EVALUATIONS, 0)


@pytest.mark.parametrize(
    ("change", "longest", "computed"),
    [(0.0, 1, [0, 2, 4]), (0.0, 3, [0, 4]), (0.2, 1, [*range(5)])],
)
def test_the_cache_reuses_results_while_the_signal_stays_close(
    denoiser: Denoiser, change: float, longest: int, computed: list[int]
) -> None:
    cache = StepCacheDeployment(largest_change=0.1, longest_run=longest)
    deployment = DEPLOYMENT.model_copy(update={"diffusion": DiffusionDeployment(cache=cache)})
    denoiser.change = change
    replica = DiffusionReplica.of(denoiser, deployment)
    offer(replica, "a", [1] * BLOCK)
    values = run(replica)["a"]
    assert [batch[0] for batch in denoiser.batches] == computed
    assert replica.count.reused == EVALUATIONS - len(computed)
    assert np.array_equal(values, alone([1] * BLOCK)) == (len(computed) == EVALUATIONS)


def test_a_stage_that_would_wait_for_more_than_it_may_hold_is_refused(denoiser: Denoiser) -> None:
    deployment = StageDeployment(input_limit=11, diffusion=DiffusionDeployment(maximum_blocks=2))
    with pytest.raises(ConfigurationError, match=r"input_limit is 11; it must be at least .* 12"):
        DiffusionReplica.of(denoiser, deployment)


def test_requests_are_opened_once(replica: DiffusionReplica) -> None:
    replica.add("a", SpeechParameters())
    with pytest.raises(ValueError, match="open already"):
        replica.add("a", SpeechParameters())
    replica.close()
    assert replica.requests == {}
