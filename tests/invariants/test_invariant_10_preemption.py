"""10: a greedy request gives the same codes alone, in any batch, held, and after preemptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import SpeechParameters
from engine.adapter import FeedRows
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from pipelines.lark.pipeline import WEIGHTS, build_talker

STEPS = 70
REQUESTS = 8


@pytest.fixture(scope="module")
def replica() -> AutoregressiveReplica:
    """A Talker whose KV cache has room for only a few requests."""
    replica = build_talker(
        WEIGHTS, StageDeployment(max_requests=REQUESTS, key_value_cache_bytes=2**20, max_steps=128)
    )
    assert isinstance(replica, AutoregressiveReplica)
    return replica


def rows_of(seed: int, steps: int = STEPS) -> FeedRows:
    values = np.random.default_rng(seed).integers(1, 170, (steps, 6))
    values[:, 0] = 0
    return FeedRows(values, tuple(range(steps)))


def speak(
    replica: AutoregressiveReplica, seeds: list[int], hold_every: int = 0
) -> dict[int, np.ndarray]:
    """All codes of requests that are stepped together; some are held now and then."""
    codes: dict[int, list[Any]] = {seed: [] for seed in seeds}
    for seed in seeds:
        replica.add(f"r{seed}", SpeechParameters())
        replica.offer(f"r{seed}", rows_of(seed))
        replica.close_input(f"r{seed}")
    for turn in range(4000):
        if not replica.requests:
            break
        for index, name in enumerate(list(replica.requests)):
            replica.set_credit(name, not hold_every or (turn + index) % hold_every != 0)
        for output in replica.step({}):
            if output.output is not None:
                seed = int(output.request_id[1:])
                assert output.output.tag == len(codes[seed])
                codes[seed].append(output.output.codes)
    assert not replica.requests
    replica.step({})
    assert replica.key_value_blocks_in_use() == 0
    assert len(replica.feeds) == 0
    return {seed: np.array(value) for seed, value in codes.items()}


@pytest.fixture(scope="module")
def alone(replica: AutoregressiveReplica) -> dict[int, np.ndarray]:
    return {seed: speak(replica, [seed])[seed] for seed in range(REQUESTS)}


@pytest.fixture
def preemptions(replica: AutoregressiveReplica, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    scheduler = replica.scheduler
    original = scheduler._preempt_request

    def preempt(request: Any, *arguments: Any, **named: Any) -> None:
        names.append(request.request_id)
        original(request, *arguments, **named)

    monkeypatch.setattr(scheduler, "_preempt_request", preempt)
    return names


@pytest.mark.parametrize("hold_every", [0, 2, 3])
def test_invariant_10_the_same_codes_alone_and_after_preemptions(
    replica: AutoregressiveReplica,
    alone: dict[int, np.ndarray],
    preemptions: list[str],
    hold_every: int,
) -> None:
    together = speak(replica, list(range(REQUESTS)), hold_every)
    assert preemptions
    for seed, codes in together.items():
        assert codes.shape == (STEPS, 5)
        assert np.array_equal(codes, alone[seed])


def test_invariant_10_requests_differ_from_each_other(alone: dict[int, np.ndarray]) -> None:
    assert not np.array_equal(alone[0], alone[1])


def test_invariant_10_no_request_is_conditioned_on_anothers_rows(
    replica: AutoregressiveReplica, alone: dict[int, np.ndarray]
) -> None:
    """Batch positions change as neighbours leave; a request's rows do not."""
    for seed, steps in ((0, 5), (1, STEPS), (2, 17), (3, 1)):
        replica.add(f"r{seed}", SpeechParameters())
        replica.offer(f"r{seed}", rows_of(seed, STEPS))
        if steps < STEPS:
            replica.requests[f"r{seed}"].feed.rows._length = steps
        replica.close_input(f"r{seed}")
    heard: dict[str, list[Any]] = {}
    for _ in range(2000):
        if not replica.requests:
            break
        for output in replica.step({}):
            if output.output is not None:
                heard.setdefault(output.request_id, []).append(output.output.codes)
    for seed, steps in ((0, 5), (1, STEPS), (2, 17), (3, 1)):
        assert np.array_equal(np.array(heard[f"r{seed}"]), alone[seed][:steps])
    replica.step({})


def test_invariant_06_a_preempted_request_can_be_aborted(
    replica: AutoregressiveReplica, preemptions: list[str]
) -> None:
    for seed in range(REQUESTS):
        replica.add(f"r{seed}", SpeechParameters())
        replica.offer(f"r{seed}", rows_of(seed))
    for _ in range(2000):
        if preemptions:
            break
        replica.step({})
    assert preemptions
    for seed in range(REQUESTS):
        replica.abort(f"r{seed}")
        replica.abort(f"r{seed}")
    assert replica.needs_cleaning
    replica.step({})
    assert not replica.needs_cleaning
    assert replica.key_value_blocks_in_use() == 0
    assert not replica.scheduler.requests
    assert len(replica.feeds) == 0
