"""What the positions of a step read: rows, codes and vectors, by request, without waiting."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.adapter import FeedRows, Padding
from engine.code_choice import CodeChoice
from engine.conditioned_model import ConditionedModel, StepInputs, gather_step_inputs
from engine.feed import Feed, GrowingVectors
from engine.hidden_states import HiddenStateStore
from tests.synchronisation import DEVICE, no_synchronisation

CPU = torch.device("cpu")
WIDTH = 3


class Model:
    """The shape of a model with vectors; nothing of it runs here."""

    row_width, row_dtype, vector_width = 2, np.dtype(np.int32), WIDTH
    codebooks, residual_codes, begin_token, end_token = 2, 0, 0, None

    def embed_step(self, inputs: StepInputs) -> torch.Tensor:
        raise NotImplementedError

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        raise NotImplementedError


def vectors(start: int, stop: int, device: torch.device = CPU) -> torch.Tensor:
    """Vectors that tell their places, from 1."""
    return torch.arange(start + 1, stop + 1, device=device)[:, None].expand(-1, WIDTH).double()


def values(start: int, stop: int) -> np.ndarray:
    return np.arange(start, stop)[:, None].repeat(2, axis=1)


def spoken(device: torch.device = CPU) -> Feed:
    """A prompt of 4 rows and one more, then two without vectors, then padding."""
    feed = Feed(2, np.int32, 2, GrowingVectors(WIDTH, torch.float32, device))
    feed.append(
        FeedRows(
            values(0, 5),
            prompt_rows=4,
            padding=Padding(np.array([-1, -1])),
            vectors=vectors(0, 5, device),
        )
    )
    feed.append(FeedRows(values(5, 7)))
    feed.close()
    return feed


def places(read: StepInputs) -> list[float]:
    """Of the vectors."""
    return read.vectors[:, 0].tolist()


@pytest.mark.parametrize("piece", [1, 2, 3, 9])
def test_a_preempted_request_reads_again_what_it_read(piece: int) -> None:
    feed, model = spoken(), Model()
    assert isinstance(model, ConditionedModel)
    codes = np.arange(12).reshape(6, 2)
    feed.codes.extend(codes)
    parts = [
        gather_step_inputs(model, [feed], [start], [min(piece, 9 - start)], CPU)
        for start in range(0, 9, piece)
    ]
    assert torch.cat([part.rows for part in parts])[:, 0].tolist() == [*range(7), -1, -1]
    assert [place for part in parts for place in places(part)] == [1, 2, 3, 4, 5, 0, 0, 0, 0]
    previous = torch.cat([part.previous_codes for part in parts]).tolist()
    assert previous == [[-1, -1]] * 4 + codes[:5].tolist()


def test_each_request_reads_its_own() -> None:
    other = Feed(2, np.int32, 2, GrowingVectors(WIDTH, torch.float32, CPU))
    other.append(FeedRows(values(100, 103), prompt_rows=3, vectors=vectors(100, 103)))
    read = gather_step_inputs(Model(), [spoken(), None, other], [3, 0, 0], [1, 2, 3], CPU)
    assert read.rows[:, 0].tolist() == [3, 0, 0, 100, 101, 102]
    assert places(read) == [4, 0, 0, 101, 102, 103]


def test_vectors_grow_and_stay_what_they_were() -> None:
    grown = GrowingVectors(WIDTH, torch.float32, CPU)
    for start, stop in ((0, 3), (3, 70), (70, 71), (71, 300)):
        grown.extend(vectors(start, stop))
        assert len(grown) == stop
        assert torch.equal(torch.cat(grown.span(0, stop)), vectors(0, stop).float())
    grown.extend_by_zeros(2)
    assert torch.cat(grown.span(299, 304))[:, 0].tolist() == [300, 0, 0, 0, 0]


def test_rows_come_with_one_vector_each_and_only_where_they_are_read() -> None:
    with pytest.raises(ValueError, match="2 feed rows came with 3 vectors"):
        FeedRows(values(0, 2), vectors=vectors(0, 3))
    with pytest.raises(ValueError, match="vector_width is 0"):
        Feed(2, np.int32, 2).append(FeedRows(values(0, 2), vectors=vectors(0, 2)))


@torch.inference_mode()
def test_nobody_waits_for_the_device() -> None:
    """From the states of a step of another stage to what the next stage's step reads."""
    store = HiddenStateStore()
    store.watch("a")
    with no_synchronisation():
        store.append("a", 0, vectors(0, 4, DEVICE), vectors(0, 4, DEVICE))
        taken = store.take("a")
        assert taken is not None
        feed = spoken(DEVICE)
        feed.codes.extend(np.zeros((4, 2), np.int64))
        read = gather_step_inputs(Model(), [feed, None, feed], [0, 0, 5], [5, 1, 3], DEVICE)
    assert {read.rows.device, read.previous_codes.device, read.vectors.device} == {DEVICE}
    assert read.vectors.shape == (9, WIDTH)
