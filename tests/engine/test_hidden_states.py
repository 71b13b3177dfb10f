"""Hidden states on their way: in order, once, and gone when they were taken."""

from __future__ import annotations

import pytest
import torch

from engine.connector import EdgeKey, InProcessConnector
from engine.hidden_states import HiddenStateStore
from engine.transfer import ChunkTransferAdapter


def rows(start: int, stop: int) -> torch.Tensor:
    """Rows that tell their positions."""
    return torch.arange(start, stop, dtype=torch.float32)[:, None].expand(-1, 3)


def test_rows_are_given_once_in_order() -> None:
    store = HiddenStateStore()
    store.watch("a")
    assert store.take("a") is None
    store.append("a", 0, rows(0, 4), rows(0, 4))
    store.append("a", 4, rows(4, 5), rows(4, 5))
    taken = store.take("a")
    assert taken is not None
    assert (taken.start, taken.stop) == (0, 5)
    assert torch.equal(torch.cat(taken.states), rows(0, 5))
    assert store.take("a") is None


def test_what_a_preempted_request_computes_again_is_left_out() -> None:
    store = HiddenStateStore()
    store.watch("a")
    store.append("a", 0, rows(0, 4), rows(0, 4))
    assert store.take("a") is not None
    store.append("a", 0, rows(0, 3), rows(0, 3))
    assert store.take("a") is None
    store.append("a", 3, rows(3, 6), rows(3, 6))
    taken = store.take("a")
    assert taken is not None
    assert taken.start == 4
    assert torch.equal(torch.cat(taken.embeddings), rows(4, 6))


def test_a_gap_is_a_fault_and_forgetting_leaves_nothing() -> None:
    store = HiddenStateStore()
    store.watch("a")
    with pytest.raises(ValueError, match="jump from position 0 to 2"):
        store.append("a", 2, rows(2, 3), rows(2, 3))
    with pytest.raises(ValueError, match="kept already"):
        store.watch("a")
    store.forget("a")
    store.forget("a")
    assert len(store) == 0


def test_rows_do_not_keep_the_batch_alive() -> None:
    store = HiddenStateStore()
    store.watch("a")
    batch = rows(0, 4).clone()
    store.append("a", 0, batch[:2], batch[:2])
    batch.zero_()
    taken = store.take("a")
    assert taken is not None
    assert torch.equal(taken.states[0], rows(0, 2))


def test_an_edge_carries_only_its_types_without_gaps() -> None:
    edge = ChunkTransferAdapter(
        InProcessConnector(), EdgeKey("a", 0, "x", "y"), 8, 1, lambda _: 1, carries=(str,)
    )
    edge.send("one")
    edge.send(2)
    edge.send("three")
    edge.send(4, final=True)
    received = [edge.receive() for _ in range(3)]
    assert [chunk.payload for chunk in received if chunk is not None] == ["one", "three", None]
    assert [chunk.seq for chunk in received if chunk is not None] == [0, 1, 2]
    assert received[-1] is not None
    assert received[-1].final
    assert edge.in_flight == 0
