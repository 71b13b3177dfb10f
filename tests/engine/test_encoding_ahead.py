"""Encoding ahead: who is waited for, whose turn it is, and that every job ends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Any

from engine.encoding_ahead import EncodingAhead, EncodingJob
from engine.stage import ReplicaSlot, StageRuntime


@dataclass
class Encoding:
    """A replica of which only the encoder is asked."""

    known: set[str] = field(default_factory=set)
    encoded: list[str] = field(default_factory=list)
    fault: Exception | None = None

    def encode(self, item: Any) -> bool:
        if self.fault is not None:
            raise self.fault
        if item in self.known:
            return False
        self.known.add(item)
        self.encoded.append(item)
        return True


def ahead_of(replica: Any) -> tuple[EncodingAhead, list[None]]:
    slot = ReplicaSlot(0)
    slot.replica = replica
    noted: list[None] = []
    runtime = StageRuntime("thinker", lambda: replica, [slot])
    return EncodingAhead(runtime, lambda: noted.append(None)), noted


def job_of(*items: str) -> EncodingJob:
    return EncodingJob(deque(items))  # type: ignore[arg-type]


def test_sounds_take_turns_and_each_job_says_what_was_new() -> None:
    replica = Encoding(known={"b2"})
    ahead, noted = ahead_of(replica)
    one, other = job_of("a1", "a2", "a3"), job_of("b1", "b2")
    ahead.add(one)
    ahead.add(other)
    assert ahead.waiting == 5
    steps = 0
    while ahead.step(inf):
        steps += 1
    assert replica.encoded == ["a1", "b1", "a2", "a3"], "what is known costs no step"
    assert steps == len(noted) == 4
    assert (one.done.result(0), other.done.result(0)) == (3, 1)
    assert ahead.waiting == 0
    assert not ahead.step(inf)


def test_a_listener_who_is_close_to_an_underrun_goes_first() -> None:
    replica = Encoding()
    ahead, _ = ahead_of(replica)
    ahead.add(job_of("a", "b"))
    for urgency in (-1.0, 0.0, 0.15, 0.2):
        assert not ahead.step(urgency)
    assert replica.encoded == []
    assert ahead.step(0.5)
    assert ahead.step(0.2), "it was measured how soon that is done"
    assert replica.encoded == ["a", "b"]


def test_whoever_stops_waiting_wants_no_more() -> None:
    replica = Encoding()
    ahead, _ = ahead_of(replica)
    left, stays = job_of("a", "b"), job_of("c")
    ahead.add(left)
    ahead.add(stays)
    assert ahead.step(inf)
    left.done.cancel()
    assert ahead.step(inf)
    assert not ahead.step(inf)
    assert replica.encoded == ["a", "c"]
    withdrawn, late = job_of("d"), job_of("e")
    ahead.add(withdrawn)
    ahead.withdraw(withdrawn)
    ahead.withdraw(withdrawn)
    late.done.cancel()
    ahead.add(late)
    assert ahead.waiting == 0


def test_a_fault_ends_its_job_and_no_other() -> None:
    replica = Encoding(fault=RuntimeError("no memory"))
    ahead, noted = ahead_of(replica)
    faulty, after = job_of("a", "b"), job_of("c")
    ahead.add(faulty)
    assert not ahead.step(inf)
    assert faulty.done.result(0) == 0
    replica.fault = None
    ahead.add(after)
    assert ahead.step(inf)
    assert after.done.result(0) == len(noted) == 1


def test_without_a_live_replica_that_encodes_jobs_are_done_at_once() -> None:
    for replica in (None, object()):
        ahead, _ = ahead_of(replica)
        job = job_of("a", "b")
        ahead.add(job)
        assert not ahead.step(inf)
        assert job.done.result(0) == 0
    nowhere = EncodingAhead(None, lambda: None)
    job = job_of("a")
    nowhere.add(job)
    assert not nowhere.step(inf)
    assert job.done.result(0) == 0


def test_closing_ends_every_job_and_those_that_come_later() -> None:
    ahead, _ = ahead_of(Encoding())
    before, after, empty = job_of("a"), job_of("b"), job_of()
    ahead.add(before)
    ahead.add(empty)
    ahead.close()
    ahead.add(after)
    for job in (before, after, empty):
        assert job.done.result(0) == 0
    assert ahead.waiting == 0
