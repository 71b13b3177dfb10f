"""Graphs of functions over batches: padding, leftover rows, and what is not captured.

Without a GPU the graph is one that does again what was recorded, on the same buffers.
"""

from __future__ import annotations

import pytest
import torch

from engine.cuda_graphs import CudaRecorder, GraphedFunction
from engine.device import to_device, to_host
from tests.graphs import RepeatRecorder

CPU = torch.device("cpu")
SIZES = (1, 2, 4, 8)


def running_sum(values: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two results of different shapes, neither of which is an argument's own memory."""
    total = state + values.sum(dim=1)
    return values.cumsum(dim=1) * state[:, None], total


def arguments(batch: int, width: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(batch, width, generator=generator),
        torch.randn(batch, generator=generator),
    )


@pytest.fixture
def recorder() -> RepeatRecorder:
    return RepeatRecorder()


@pytest.fixture
def graphed(recorder: RepeatRecorder) -> GraphedFunction:
    function = GraphedFunction(running_sum, SIZES, CPU, recorder)
    function.capture(*arguments(1))
    return function


def test_every_batch_size_is_captured_once_the_largest_first(
    graphed: GraphedFunction, recorder: RepeatRecorder
) -> None:
    assert len(recorder.graphs) == len(SIZES)
    graphed.capture(*arguments(1, seed=7))
    assert len(recorder.graphs) == len(SIZES)
    graphed(*arguments(8))
    assert recorder.replays == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("batch", "replayed"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (7, 8), (8, 8)]
)
def test_the_next_larger_size_is_replayed_and_its_padding_not_seen(
    graphed: GraphedFunction, recorder: RepeatRecorder, batch: int, replayed: int
) -> None:
    assert graphed.size_for(batch) == replayed
    graphed(*arguments(8, seed=9))  # leaves rows behind
    expected = running_sum(*arguments(batch))
    for made, wanted in zip(graphed(*arguments(batch)), expected, strict=True):
        assert torch.equal(made, wanted)
    counts = dict(zip(reversed(SIZES), recorder.replays, strict=True))
    assert counts[replayed] == 1 + (replayed == 8)


def test_a_batch_above_the_largest_size_runs_as_it_is(
    graphed: GraphedFunction, recorder: RepeatRecorder
) -> None:
    assert graphed.size_for(9) is None
    for made, wanted in zip(graphed(*arguments(9)), running_sum(*arguments(9)), strict=True):
        assert torch.equal(made, wanted)
    assert sum(recorder.replays) == 0


@pytest.mark.parametrize("change", ["shape", "dtype"])
def test_arguments_of_another_kind_run_as_they_are(
    graphed: GraphedFunction, recorder: RepeatRecorder, change: str
) -> None:
    values, state = arguments(2, width=5 if change == "shape" else 3)
    if change == "dtype":
        values = values.double()
    expected = running_sum(values, state)
    made = graphed(values, state)
    assert all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))
    assert made[0].dtype == expected[0].dtype
    assert sum(recorder.replays) == 0
    graphed.capture(values[:1], state[:1])
    again = graphed(values, state)
    assert all(torch.equal(a, b) for a, b in zip(again, expected, strict=True))
    assert sum(recorder.replays) == 1


def test_results_stay_until_the_next_call(graphed: GraphedFunction) -> None:
    first = graphed(*arguments(2))
    kept = [result.clone() for result in first]
    graphed(*arguments(2, seed=5))
    assert not torch.equal(first[0], kept[0])


def test_without_a_recorder_nothing_is_captured_on_the_cpu() -> None:
    function = GraphedFunction(running_sum, SIZES, CPU)
    function.capture(*arguments(1))
    assert function.batch_sizes == ()
    assert function.size_for(1) is None
    made = function(*arguments(3))
    assert torch.equal(made[1], running_sum(*arguments(3))[1])


def test_copies_between_host_and_device_keep_values() -> None:
    values, state = arguments(3)
    assert torch.equal(to_device(values, CPU), values)
    assert all(
        torch.equal(a, b) for a, b in zip(to_host(values, state), (values, state), strict=True)
    )


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
def test_graphs_on_a_gpu_give_what_the_function_gives() -> None:
    device = torch.device("cuda:0")
    network = torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 16)
    ).to(device)

    def function(values: torch.Tensor) -> tuple[torch.Tensor]:
        return (network(values),)

    graphed = GraphedFunction(function, SIZES, device, CudaRecorder(device))
    graphed.capture(torch.zeros(1, 16))
    for batch in (8, 1, 3, 9, 5):
        values = torch.randn(batch, 16)
        with torch.inference_mode():
            (expected,) = function(values.to(device))
        (made,) = graphed(values.pin_memory())
        (on_host,) = to_host(made)
        assert torch.allclose(on_host, expected.cpu(), atol=1e-5)
        assert torch.equal(to_device(on_host, device), made)
