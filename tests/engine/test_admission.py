from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.admission import WaitingLine


def test_requests_run_until_the_limit_then_wait_then_are_refused() -> None:
    line = WaitingLine(maximum_running=2, maximum_waiting=1)
    assert [line.enter(name, "t") for name in "abcd"] == [True, True, False, None]
    assert line.leave("a") == ["c"]
    assert (line.running, line.waiting) == (2, 0)


def test_turns_go_round_between_tenants() -> None:
    line = WaitingLine(1, 100)
    line.enter("first", "greedy")
    for index in range(4):
        line.enter(f"greedy{index}", "greedy")
    line.enter("modest0", "modest")
    line.enter("other0", "other")
    order = ["first"]
    while len(order) < 7:
        order += line.leave(order[-1])
    assert order[1:] == ["greedy0", "modest0", "other0", "greedy1", "greedy2", "greedy3"]


def test_a_tenant_with_one_request_waits_one_round_at_most() -> None:
    line = WaitingLine(1, 1000)
    line.enter("running", "crowd")
    for index in range(500):
        line.enter(f"crowd{index}", f"crowd {index % 5}")
    line.enter("modest", "modest")
    turns = 0
    current = "running"
    while current != "modest":
        (current,) = line.leave(current)
        turns += 1
    assert turns <= 6


def test_who_waits_may_leave() -> None:
    line = WaitingLine(1, 3)
    for name in ("a", "b", "c"):
        line.enter(name, name)
    assert line.leave("b") == []
    assert line.leave("b") == []
    assert line.leave("a") == ["c"]
    assert line.leave("nobody") == []


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 3))
def test_each_tenant_is_served_in_its_order(tenants: list[str], places: int) -> None:
    line = WaitingLine(places, 100)
    served: list[str] = []
    for index, tenant in enumerate(tenants):
        if line.enter(f"{tenant}{index}", tenant):
            served.append(f"{tenant}{index}")
    position = 0
    while position < len(served):
        served += line.leave(served[position])
        position += 1
    assert len(served) == len(tenants)
    for tenant in "abc":
        numbers = [int(name[1:]) for name in served if name[0] == tenant]
        assert numbers == sorted(numbers)


class LineMachine(RuleBasedStateMachine):
    """Any order of entering and leaving: bounds hold, nobody is lost, free places are filled."""

    def __init__(self) -> None:
        super().__init__()
        self.line = WaitingLine(3, 5)
        self.running: set[str] = set()
        self.waiting: set[str] = set()
        self.entered = 0

    @rule(tenant=st.sampled_from("abcd"))
    def enter(self, tenant: str) -> None:
        name = f"{tenant}{self.entered}"
        self.entered += 1
        result = self.line.enter(name, tenant)
        if len(self.running) < 3:
            assert result is True
            self.running.add(name)
        elif len(self.waiting) < 5:
            assert result is False
            self.waiting.add(name)
        else:
            assert result is None

    @precondition(lambda self: self.running or self.waiting)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.running | self.waiting)))
        self.running.discard(name)
        self.waiting.discard(name)
        admitted = set(self.line.leave(name))
        assert admitted <= self.waiting
        self.running |= admitted
        self.waiting -= admitted
        assert self.line.leave(name) == []

    @invariant()
    def counts_agree(self) -> None:
        assert self.line.running == len(self.running) <= 3
        assert self.line.waiting == len(self.waiting) <= 5
        assert not self.waiting or len(self.running) == 3


TestLine = LineMachine.TestCase
TestLine.settings = settings(max_examples=60, deadline=None)
