"""1: our scheduler is vLLM's; side by side they do the same, and holding adds one thing only.

Both schedulers are the real ones, with a small KV cache and a small token budget, so that
prefills are chunked and requests are preempted. The model is replaced by a function of the
request and the position: what a step samples does not depend on who else is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from vllm import ModelRegistry, SamplingParams
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from engine.scheduler import OmniARScheduler
from pipelines.lark.configuration import register_configuration
from pipelines.lark.pipeline import WEIGHTS

BLOCK = 4
BLOCKS = 14
"""One of them is vLLM's null block."""

MOST_TOKENS = 10
"""A step's budget: longer prompts are prefilled in pieces."""

MOST_REQUESTS = 3
LONGEST = 40


@cache
def configuration(prefix_caching: bool) -> VllmConfig:
    from pipelines.lark.talker import LarkTalker

    register_configuration()
    ModelRegistry.register_model("LarkTalker", LarkTalker)
    return EngineArgs(
        model=str(WEIGHTS),
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=True,
        max_model_len=LONGEST,
        max_num_seqs=MOST_REQUESTS,
        max_num_batched_tokens=MOST_TOKENS,
        block_size=BLOCK,
        enable_prefix_caching=prefix_caching,
        async_scheduling=False,
        disable_log_stats=True,
        distributed_executor_backend="uni",
    ).create_engine_config()


def token_of(name: str, position: int) -> int:
    """What the model would sample there."""
    return (hash_of(name) + 7 * position) % 50 + 10


def hash_of(name: str) -> int:
    return sum(map(ord, name))


@dataclass
class Side:
    """One scheduler and what it gave."""

    kind: type[Scheduler]
    prefix_caching: bool = False
    window: int | None = None
    scheduler: Scheduler = field(init=False)
    tokens: dict[str, list[int]] = field(default_factory=dict)
    ended: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = configuration(self.prefix_caching)
        config.cache_config.num_gpu_blocks = BLOCKS
        sizes: dict[str, Any] = {
            "block_size": BLOCK,
            "num_kv_heads": 1,
            "head_size": 1,
            "dtype": torch.float32,
        }
        spec = (
            FullAttentionSpec(**sizes)
            if self.window is None
            else SlidingWindowSpec(**sizes, sliding_window=self.window)
        )
        self.scheduler = self.kind(
            vllm_config=config,
            kv_cache_config=KVCacheConfig(BLOCKS, [], [KVCacheGroupSpec(["layer"], spec)]),
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK,
        )

    def add(self, name: str, prompt: list[int], count: int) -> None:
        hasher = None
        if self.prefix_caching:
            function = get_hash_fn_by_name("sha256")
            init_none_hash(function)
            hasher = get_request_block_hasher(BLOCK, function)
        sampling = SamplingParams(max_tokens=count, ignore_eos=True, temperature=0.0)
        request = Request(name, list(prompt), sampling, None, block_hasher=hasher)
        self.scheduler.add_request(request)
        self.tokens[name] = []

    def abort(self, name: str) -> None:
        self.scheduler.finish_requests([name], RequestStatus.FINISHED_ABORTED)

    def step(self) -> SchedulerOutput:
        scheduled = self.scheduler.schedule()
        names = list(scheduled.num_scheduled_tokens)
        sampled = []
        for name in names:
            request = self.scheduler.requests[name]
            whole = request.num_computed_tokens >= request.num_tokens
            sampled.append([token_of(name, request.num_tokens)] if whole else [])
        output = ModelRunnerOutput(names, {n: i for i, n in enumerate(names)}, sampled)
        for part in self.scheduler.update_from_output(scheduled, output).values():
            for result in part.outputs:
                self.tokens[result.request_id] += result.new_token_ids
                if result.finish_reason is not None:
                    self.ended[result.request_id] = result.finish_reason
        return scheduled

    def run_until(self, holds: Callable[[], bool]) -> None:
        for _ in range(2000):
            if holds():
                return
            self.step()
        raise AssertionError("It does not come to that.")

    def run_to_the_end(self) -> None:
        self.run_until(lambda: not self.scheduler.has_unfinished_requests())

    def blocks_of(self, name: str) -> Any:
        return self.scheduler.kv_cache_manager.get_block_ids(name)

    @property
    def free_blocks(self) -> int:
        return self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()

    @property
    def waiting(self) -> list[str]:
        return [request.request_id for request in self.scheduler.waiting]

    @property
    def running(self) -> list[str]:
        return [request.request_id for request in self.scheduler.running]

    def state(self) -> dict[str, Any]:
        """Everything that another scheduler in the same situation must agree on."""
        return {
            "requests": {
                name: (
                    request.status,
                    request.num_computed_tokens,
                    request.num_tokens,
                    request.num_preemptions,
                    self.blocks_of(name),
                )
                for name, request in self.scheduler.requests.items()
            },
            "running": self.running,
            "waiting": self.waiting,
            "finished": set(self.scheduler.finished_req_ids),
            "free": self.free_blocks,
            "tokens": self.tokens,
            "ended": self.ended,
        }


def told(scheduled: SchedulerOutput) -> dict[str, Any]:
    """What a step tells the worker."""
    cached = scheduled.scheduled_cached_reqs
    return {
        "tokens": scheduled.num_scheduled_tokens,
        "total": scheduled.total_num_scheduled_tokens,
        "new": [
            (new.req_id, new.prompt_token_ids, new.block_ids, new.num_computed_tokens)
            for new in scheduled.scheduled_new_reqs
        ],
        "cached": (cached.req_ids, cached.new_block_ids, cached.num_computed_tokens),
        "resumed": cached.resumed_req_ids,
        "finished": scheduled.finished_req_ids,
        "preempted": scheduled.preempted_req_ids,
    }


def pair(**options: Any) -> tuple[Side, Side]:
    return Side(OmniARScheduler, **options), Side(Scheduler, **options)


def hold(side: Side, names: Iterable[str]) -> None:
    assert isinstance(side.scheduler, OmniARScheduler)
    side.scheduler.hold(frozenset(names))


prompts = st.lists(st.integers(0, 3), min_size=1, max_size=24)
counts = st.integers(1, 14)
modes = st.sampled_from(
    [
        {"prefix_caching": False, "window": None},
        {"prefix_caching": False, "window": 8},
        {"prefix_caching": True, "window": None},
    ]
)
few = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


class SideBySide(RuleBasedStateMachine):
    """Nothing is held: step by step both do the same, to the block."""

    @initialize(mode=modes)
    def begin(self, mode: dict[str, Any]) -> None:
        self.ours, self.theirs = pair(**mode)
        self.added = 0

    @rule(prompt=prompts, count=counts)
    def add(self, prompt: list[int], count: int) -> None:
        name = f"r{self.added}"
        self.added += 1
        for side in (self.ours, self.theirs):
            side.add(name, prompt, count)

    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        names = [*sorted(self.theirs.scheduler.requests), "unknown"]
        name = data.draw(st.sampled_from(names))
        for side in (self.ours, self.theirs):
            side.abort(name)

    @rule(times=st.integers(1, 4), names=st.sets(st.sampled_from(["gone", "not yet"])))
    def step(self, times: int, names: set[str]) -> None:
        hold(self.ours, names)
        for _ in range(times):
            assert told(self.ours.step()) == told(self.theirs.step())

    @invariant()
    def the_same(self) -> None:
        if hasattr(self, "ours"):
            assert self.ours.state() == self.theirs.state()

    def teardown(self) -> None:
        if not hasattr(self, "ours"):
            return
        for side in (self.ours, self.theirs):
            side.run_to_the_end()
        self.the_same()
        assert self.ours.free_blocks == BLOCKS - 1


class Held(RuleBasedStateMachine):
    """Any requests are held at any steps: in the end everyone got what it gets without."""

    @initialize(mode=modes)
    def begin(self, mode: dict[str, Any]) -> None:
        self.ours, self.theirs = pair(**mode)
        self.added = 0

    @rule(prompt=prompts, count=counts)
    def add(self, prompt: list[int], count: int) -> None:
        name = f"r{self.added}"
        self.added += 1
        for side in (self.ours, self.theirs):
            side.add(name, prompt, count)

    @rule(data=st.data(), times=st.integers(1, 3))
    def step_with_some_held(self, data: st.DataObject, times: int) -> None:
        names = sorted(self.ours.scheduler.requests)
        held = set(data.draw(st.lists(st.sampled_from(names)))) if names else set()
        hold(self.ours, held)
        for _ in range(times):
            before = self.ours.state()
            scheduled = self.ours.step()
            self.check(before, held, scheduled)

    def check(self, before: dict[str, Any], held: set[str], scheduled: SchedulerOutput) -> None:
        assert not held & set(scheduled.num_scheduled_tokens)
        requests = self.ours.scheduler.requests
        for name in held & set(before["requests"]):
            # It keeps its blocks and its progress, or it was preempted as any other could be.
            _, computed, count, preemptions, blocks = before["requests"][name]
            request = requests[name]
            assert request.num_tokens == count
            assert self.ours.tokens[name] == before["tokens"][name]
            if request.num_preemptions == preemptions:
                assert request.num_computed_tokens == computed
                assert self.ours.blocks_of(name) == blocks
        # The order of who runs and of who waits is kept.
        assert in_order(before["running"], self.ours.running)
        stayed = [name for name in self.ours.waiting if name in before["waiting"]]
        assert stayed == [name for name in before["waiting"] if name in stayed]

    def teardown(self) -> None:
        if not hasattr(self, "ours"):
            return
        hold(self.ours, ())
        for side in (self.ours, self.theirs):
            side.run_to_the_end()
        assert self.ours.tokens == self.theirs.tokens
        assert self.ours.ended == self.theirs.ended
        assert self.ours.free_blocks == self.theirs.free_blocks == BLOCKS - 1


def in_order(before: list[str], after: list[str]) -> bool:
    stayed = [name for name in after if name in before]
    return stayed == [name for name in before if name in stayed]


class TestInvariant01SideBySide(SideBySide.TestCase):
    settings = few


class TestInvariant01Held(Held.TestCase):
    settings = few


def test_invariant_01_holding_everyone_schedules_nobody_and_takes_nothing() -> None:
    side = Side(OmniARScheduler)
    for name in "abcde":
        side.add(name, [1, 2, 3], 9)
    side.step()
    before = side.state()
    hold(side, "abcde")
    for _ in range(5):
        assert side.step().num_scheduled_tokens == {}
    assert side.state() == before
    hold(side, ())
    assert set(side.step().num_scheduled_tokens) == {"a", "b", "c"}


def test_invariant_01_a_held_request_resumes_at_the_next_step() -> None:
    side = Side(OmniARScheduler)
    side.add("a", [1], 5)
    side.add("b", [1], 5)
    side.step()
    hold(side, "a")
    side.step()
    hold(side, ())
    assert set(side.step().num_scheduled_tokens) == {"a", "b"}
    assert (len(side.tokens["a"]), len(side.tokens["b"])) == (2, 3)


def test_invariant_01_who_waits_and_is_held_keeps_its_place_in_the_line() -> None:
    side = Side(OmniARScheduler)
    for name in "abcdef":
        side.add(name, [1], 9)
    side.step()
    assert side.waiting == ["d", "e", "f"]
    hold(side, "e")
    side.step()
    assert side.waiting == ["d", "e", "f"]
    hold(side, "d")
    side.abort("a")
    side.step()
    assert side.running == ["b", "c", "e"]
    assert side.waiting == ["d", "f"]


def test_invariant_01_a_held_request_may_be_preempted_and_is_computed_again() -> None:
    side = Side(OmniARScheduler)
    side.add("first", list(range(20)), 16)
    side.add("second", list(range(20)), 8)
    side.run_until(lambda: bool(side.tokens["second"]))
    hold(side, ["second"])
    side.run_until(lambda: bool(side.scheduler.requests["second"].num_preemptions))
    assert side.running == ["first"]
    assert not any(side.blocks_of("second"))
    hold(side, ())
    side.run_to_the_end()
    assert side.tokens["second"] == [token_of("second", 20 + index) for index in range(8)]
    assert side.free_blocks == BLOCKS - 1


def test_invariant_01_a_held_prefill_goes_on_where_it_was() -> None:
    side = Side(OmniARScheduler)
    side.add("long", list(range(24)), 2)
    side.step()
    assert side.scheduler.requests["long"].num_computed_tokens == MOST_TOKENS
    blocks = side.blocks_of("long")
    hold(side, ["long"])
    side.step()
    assert side.blocks_of("long") == blocks
    hold(side, ())
    assert side.step().num_scheduled_tokens == {"long": MOST_TOKENS}


def test_invariant_01_a_held_request_can_be_aborted() -> None:
    side = Side(OmniARScheduler)
    for name in "abcd":
        side.add(name, [1, 2], 9)
    side.step()
    hold(side, "ad")
    side.abort("a")
    side.abort("d")
    scheduled = side.step()
    assert scheduled.finished_req_ids == {"a", "d"}
    assert set(side.scheduler.requests) == {"b", "c"}


def test_invariant_01_ours_overrides_one_method_of_upstreams() -> None:
    own = {name for name in vars(OmniARScheduler) if not name.startswith(("__", "_abc"))}
    assert own & set(dir(Scheduler)) == {"schedule"}
