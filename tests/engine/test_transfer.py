from __future__ import annotations

import threading
from collections import deque
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.chunk import Chunk
from engine.connector import EdgeKey, InProcessConnector
from engine.errors import ErrorCode, StageError
from engine.transfer import ChunkGapError, ChunkTransferAdapter, TransferState

KEY = EdgeKey("request", 0, "stage", "")
FAILURE = StageError(ErrorCode.STAGE_FAILED, "It broke.")


def edge(
    connector: InProcessConnector, capacity: int = 10, reserve: int = 4
) -> ChunkTransferAdapter:
    return ChunkTransferAdapter(connector, KEY, capacity, reserve, len)


def received(transfer: ChunkTransferAdapter) -> list[Chunk[Any]]:
    chunks = []
    while (chunk := transfer.receive()) is not None:
        chunks.append(chunk)
    return chunks


def test_chunks_arrive_in_order_numbered_and_addressed() -> None:
    transfer = edge(InProcessConnector())
    transfer.send("ab")
    transfer.send("c", final=True)
    first, last = received(transfer)
    assert (first.request, first.epoch, first.stage) == ("request", 0, "stage")
    assert (first.seq, first.payload, first.final) == (0, "ab", False)
    assert (last.seq, last.payload, last.final, last.error) == (1, "c", True, None)


def test_a_stream_ends_once() -> None:
    transfer = edge(InProcessConnector())
    transfer.send(None, final=True)
    with pytest.raises(RuntimeError, match="has ended"):
        transfer.send("late")
    with pytest.raises(RuntimeError, match="has ended"):
        transfer.send(None, final=True)


def test_credit_is_room_for_one_more_chunk_of_the_largest_cost() -> None:
    transfer = edge(InProcessConnector())
    for payload in ("1234", "12"):
        assert transfer.check_credit()
        transfer.send(payload)
    assert transfer.check_credit()
    transfer.send("1")
    assert transfer.in_flight == 7
    assert not transfer.check_credit()
    assert transfer.starved
    transfer.receive()
    assert transfer.has_credit
    assert transfer.check_credit()
    assert not transfer.starved


def test_a_failure_is_all_that_is_left_and_numbered_after_what_was_taken() -> None:
    transfer = edge(InProcessConnector())
    for payload in ("a", "b", "c"):
        transfer.send(payload)
    assert transfer.receive() is not None
    transfer.fail(FAILURE)
    transfer.send("dropped")
    transfer.fail(FAILURE)
    (last,) = received(transfer)
    assert (last.seq, last.payload, last.final, last.error) == (1, None, True, FAILURE)


def test_a_gap_is_an_error_at_once() -> None:
    connector = InProcessConnector()
    transfer = edge(connector)
    transfer.send("a")
    transfer.send("b")
    connector.take(KEY)
    with pytest.raises(ChunkGapError, match=r"Chunk 1 .* came where 0 was due"):
        transfer.receive()


def test_an_edge_that_can_hold_no_chunk_is_refused() -> None:
    connector = InProcessConnector()
    with pytest.raises(ValueError, match="cannot hold"):
        edge(connector, capacity=3, reserve=4)
    assert len(connector) == 0


def test_releasing_frees_the_channel_and_is_idempotent() -> None:
    connector = InProcessConnector()
    transfer = edge(connector)
    transfer.send("abc")
    transfer.release()
    transfer.release()
    transfer.send("dropped")
    transfer.fail(FAILURE)
    assert len(connector) == 0
    assert transfer.in_flight == 0
    assert transfer.receive() is None
    edge(connector)  # the name is free again


def test_a_channel_opens_once() -> None:
    connector = InProcessConnector()
    connector.open(KEY)
    with pytest.raises(ValueError, match="open already"):
        connector.open(KEY)


def test_a_closed_or_unknown_channel_takes_nothing() -> None:
    connector = InProcessConnector()
    chunk = Chunk("request", 0, "stage", 0, "x")
    assert not connector.put(KEY, chunk)
    connector.close(KEY)
    connector.open(KEY)
    assert connector.put(KEY, chunk)
    connector.close(KEY, chunk)
    assert not connector.put(KEY, chunk)
    assert connector.take(KEY) is chunk
    assert connector.take(KEY) is None
    connector.forget(KEY)
    connector.forget(KEY)
    assert len(connector) == 0


def test_a_producer_and_a_consumer_on_two_threads_lose_nothing_and_never_exceed_the_capacity() -> (
    None
):
    """The producer sleeps when it is starved; a wake-up that got lost would hang this test."""
    transfer = edge(InProcessConnector(), capacity=8, reserve=4)
    count = 3000
    credit, arrived = threading.Semaphore(0), threading.Semaphore(0)
    most = 0

    def produce() -> None:
        nonlocal most
        for index in range(count):
            while not transfer.check_credit():
                assert credit.acquire(timeout=10)
            transfer.send("x" * (index % 4 + 1), final=index == count - 1)
            most = max(most, transfer.in_flight)
            arrived.release()

    producer = threading.Thread(target=produce)
    producer.start()
    sequence: list[int] = []
    while len(sequence) < count:
        assert arrived.acquire(timeout=10)
        chunk = transfer.receive()
        assert chunk is not None
        sequence.append(chunk.seq)
        if transfer.starved and transfer.has_credit:
            credit.release()
    producer.join(10)
    assert sequence == list(range(count))
    assert most <= 8
    assert transfer.in_flight == 0


class TransferMachine(RuleBasedStateMachine):
    """Any order of what producer and consumer may do, against a plain model of it."""

    def __init__(self) -> None:
        super().__init__()
        self.connector = InProcessConnector()
        self.transfer = edge(self.connector)
        self.waiting: deque[tuple[str | None, bool]] = deque()
        self.taken: list[Chunk[Any]] = []
        self.failed = self.ended = self.released = False

    @precondition(lambda self: not self.ended and self.transfer.check_credit())
    @rule(payload=st.text("ab", min_size=0, max_size=4))
    def send(self, payload: str) -> None:
        self.transfer.send(payload)
        if not (self.failed or self.released):
            self.waiting.append((payload, False))

    @precondition(lambda self: not self.ended)
    @rule()
    def end(self) -> None:
        self.transfer.send(None, final=True)
        if not (self.failed or self.released):
            self.ended = True
            self.waiting.append((None, True))

    @rule()
    def fail(self) -> None:
        self.transfer.fail(FAILURE)
        if not (self.failed or self.released or (self.ended and not self.waiting)):
            self.failed = True
            self.waiting.clear()
            self.waiting.append((None, True))
        self.failed = True

    @rule()
    def receive(self) -> None:
        chunk = self.transfer.receive()
        if not self.waiting or (self.taken and self.taken[-1].final):
            assert chunk is None
            return
        payload, final = self.waiting.popleft()
        assert chunk is not None
        assert (chunk.payload, chunk.final) == (payload, final)
        self.taken.append(chunk)

    @rule()
    def release(self) -> None:
        self.transfer.release()
        self.released = True
        self.waiting.clear()

    @invariant()
    def it_holds(self) -> None:
        assert [chunk.seq for chunk in self.taken] == list(range(len(self.taken)))
        assert sum(chunk.final for chunk in self.taken) <= 1
        assert 0 <= self.transfer.in_flight <= self.transfer.capacity
        if self.released:
            assert self.transfer.in_flight == 0
            assert len(self.connector) == 0
            assert self.transfer.state is TransferState.CANCELLED


TestTransfer = TransferMachine.TestCase
TestTransfer.settings = settings(max_examples=150, deadline=None)
