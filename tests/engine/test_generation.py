from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import ConfigurationError, SpeechParameters, WordTiming
from engine.adapter import GenerationInput
from engine.chunk_policy import ChunkPolicy, MovingAverage
from engine.deploy_config import ChunkDeployment, StageDeployment
from engine.generation import (
    GenerationItem,
    GenerationOutput,
    GenerationReplica,
    OmniGenerationScheduler,
)

DEPLOYMENT = StageDeployment(
    max_requests=3,
    input_limit=16,
    chunk=ChunkDeployment(first_units=2, maximum_units=8, growth=2.0),
)
MUCH = 100.0


@dataclass
class Voice:
    """Ten samples a unit, each the unit's number; remembers how it was called."""

    sample_rate: int = 100
    unit_samples: int = 10
    batches: list[list[GenerationItem]] = field(default_factory=list)

    def open(self, parameters: SpeechParameters) -> list[int]:
        return []

    def step(self, items: list[GenerationItem]) -> list[np.ndarray]:
        self.batches.append(items)
        return [np.repeat(np.array(item.data, np.float32), 10) for item in items]


@pytest.fixture
def voice() -> Voice:
    return Voice()


@pytest.fixture
def replica(voice: Voice) -> GenerationReplica:
    return GenerationReplica.of(voice, DEPLOYMENT)


def offer(replica: GenerationReplica, name: str, count: int, start: int = 0) -> None:
    if name not in replica.requests:
        replica.add(name, SpeechParameters())
    for value in range(start, start + count):
        replica.offer(name, GenerationInput(1, value))


def names(outputs: list[GenerationOutput]) -> list[str]:
    return [output.request_id for output in outputs]


def test_a_module_is_captured_at_the_usual_sizes_and_as_the_deployment_says() -> None:
    @dataclass
    class CapturedVoice(Voice):
        captured: list[tuple[Sequence[int], Sequence[int]]] = field(default_factory=list)

        def capture(self, units: Sequence[int], batch_sizes: Sequence[int]) -> None:
            self.captured.append((units, batch_sizes))

    on_gpu = DEPLOYMENT.model_copy(update={"device": "cuda:0", "cuda_graphs": [1, 2]})
    module = CapturedVoice()
    GenerationReplica.of(module, on_gpu)
    assert module.captured == [([2, 5, 8], [1, 2])]
    GenerationReplica.of(module, DEPLOYMENT)
    assert len(module.captured) == 1
    with pytest.raises(ConfigurationError, match=r"cuda_graphs is \[1, 2\], but"):
        GenerationReplica.of(Voice(), on_gpu)


def test_nothing_is_due_before_the_first_chunk_is_there(replica: GenerationReplica) -> None:
    offer(replica, "a", 1)
    assert replica.ready({}) == []
    assert replica.step({}) == []
    offer(replica, "a", 1, start=1)
    assert replica.ready({}) == ["a"]
    (output,) = replica.step({"a": MUCH})
    assert output.output is not None
    assert output.output.samples.tolist() == [0.0] * 10 + [1.0] * 10
    assert not output.finished


def test_a_request_without_credit_is_skipped_and_not_waited_for(
    replica: GenerationReplica,
) -> None:
    offer(replica, "held", 4)
    offer(replica, "free", 4)
    replica.set_credit("held", False)
    assert names(replica.step({})) == ["free"]
    assert replica.requests["held"].units == 4
    replica.close_input("held")
    assert replica.ready({}) == []
    replica.set_credit("held", True)
    (output,) = replica.step({})
    assert output.finished


def test_the_most_urgent_go_first_and_no_more_than_the_batch_holds(
    replica: GenerationReplica,
) -> None:
    for name in "abcde":
        offer(replica, name, 2)
    slacks = {"a": 5.0, "b": 1.0, "c": 3.0, "d": -1.0, "e": 4.0}
    assert names(replica.step(slacks)) == ["d", "b", "c"]
    assert names(replica.step(slacks)) == ["e", "a"]


def test_who_could_wait_rides_along_with_who_is_due(replica: GenerationReplica) -> None:
    offer(replica, "rich", 2)
    replica.step({"rich": MUCH})
    offer(replica, "rich", 2)
    assert replica.ready({"rich": MUCH}) == []
    offer(replica, "new", 2)
    assert names(replica.step({"rich": MUCH, "new": 0.1})) == ["new", "rich"]


def test_a_large_chunk_does_not_hold_an_urgent_one_up(replica: GenerationReplica) -> None:
    offer(replica, "rich", 2)
    replica.step({"rich": MUCH})
    offer(replica, "rich", 6)
    offer(replica, "poor", 2)
    assert set(replica.ready({"rich": MUCH, "poor": 0.2})) == {"rich", "poor"}
    assert names(replica.step({"rich": MUCH, "poor": 0.2})) == ["poor"]
    assert names(replica.step({"rich": MUCH, "poor": 0.5})) == ["rich"]
    offer(replica, "rich", 8)
    offer(replica, "poor", 6)
    assert names(replica.step({"rich": 0.4, "poor": 0.2})) == ["poor", "rich"], "both are in need"


def test_where_many_are_served_the_first_chunk_is_larger() -> None:
    policy = ChunkPolicy(2, 8, 2.0, 0.1, first_units_more=2)
    replica = GenerationReplica(
        Voice(), OmniGenerationScheduler(policy, 4, MovingAverage(0.01)), 16
    )
    offer(replica, "alone", 2)
    assert replica.ready({}) == ["alone"]
    replica.step({})
    offer(replica, "new", 3)
    offer(replica, "alone", 8)
    assert names(replica.step({"alone": MUCH})) == ["alone"], "the first chunk never rides along"
    offer(replica, "new", 1)
    assert replica.ready({}) == ["new"]
    for name in "abcdef":
        replica.add(name, SpeechParameters())
    assert replica.ready({}) == []
    offer(replica, "new", 4)
    assert replica.ready({}) == ["new"], "no chunk is larger than the largest"


def test_a_closed_input_is_flushed_once_with_all_its_words(replica: GenerationReplica) -> None:
    word = WordTiming("late", 0, 4, 99.0, 99.5)
    offer(replica, "a", 1)
    replica.offer("a", GenerationInput(0, 7, (word,)))
    replica.close_input("a")
    (output,) = replica.step({})
    assert output.finished
    assert output.output is not None
    assert output.output.words == (word,)
    assert replica.requests == {}


def test_an_input_that_closes_empty_ends_without_a_payload(replica: GenerationReplica) -> None:
    replica.add("a", SpeechParameters())
    replica.close_input("a")
    assert replica.step({}) == [GenerationOutput("a", None, finished=True)]


def test_words_are_told_when_their_sound_has_begun(replica: GenerationReplica) -> None:
    early, late = WordTiming("a", 0, 1, 0.0, 0.1), WordTiming("b", 2, 3, 0.35, 0.4)
    replica.add("x", SpeechParameters())
    replica.offer("x", GenerationInput(1, 0, (early, late)))
    replica.offer("x", GenerationInput(1, 0))
    (first,) = replica.step({})
    offer(replica, "x", 4)
    (second,) = replica.step({})
    assert first.output is not None
    assert second.output is not None
    assert (first.output.words, second.output.words) == ((early,), (late,))


@given(st.lists(st.integers(1, 12), max_size=8), st.lists(st.floats(-1, 20), min_size=4))
def test_every_unit_is_voiced_once_and_in_order(arrivals: list[int], slacks: list[float]) -> None:
    voice = Voice()
    replica = GenerationReplica.of(voice, DEPLOYMENT)
    replica.add("a", SpeechParameters())
    heard: list[float] = []
    total = 0
    finished = False

    def run(slack: float) -> None:
        nonlocal finished
        for output in replica.step({"a": slack}):
            heard.extend([] if output.output is None else output.output.samples[::10].tolist())
            finished = output.finished

    for turn, count in enumerate(arrivals):
        offer(replica, "a", count, start=total)
        total += count
        run(slacks[turn % len(slacks)])
    replica.close_input("a")
    while not finished:
        assert replica.ready({}) == ["a"]
        run(0.0)
    assert heard == list(range(total))
    assert [item.final for batch in voice.batches for item in batch].count(True) == 1
    assert all(len(item.data) <= 8 for batch in voice.batches for item in batch)


def test_requests_are_opened_once_and_aborting_is_idempotent(replica: GenerationReplica) -> None:
    replica.add("a", SpeechParameters())
    with pytest.raises(ValueError, match="open already"):
        replica.add("a", SpeechParameters())
    replica.abort("a")
    replica.abort("a")
    assert replica.requests == {}


def test_a_stage_that_would_wait_for_more_than_it_may_hold_is_refused(voice: Voice) -> None:
    chunk = ChunkDeployment(first_units=2, maximum_units=17)
    with pytest.raises(ConfigurationError, match="input_limit is 16; it must be at least"):
        GenerationReplica.of(voice, StageDeployment(input_limit=16, chunk=chunk))


def test_the_scheduler_waits_for_the_size_that_the_policy_wants() -> None:
    policy = ChunkPolicy(2, 8, 2.0, 0.1)
    scheduler = OmniGenerationScheduler(policy, 4, MovingAverage(0.01))
    replica = GenerationReplica(Voice(), scheduler, 16)
    offer(replica, "a", 4)
    replica.requests["a"].previous_units = 2
    assert not scheduler.due(replica.requests["a"], slack=MUCH)
    assert scheduler.due(replica.requests["a"], slack=0.0)
