"""CUDA graphs of pure functions over batches, captured at a few batch sizes.

Small networks on a GPU spend most of a step on launching their kernels one by one. A CUDA graph
launches all of them at once, but only with the very tensors that it was captured with. So a
function's arguments are copied into buffers that stay, the graph of the next larger batch size is
replayed, and the rows that were asked for are given out. The rows behind them are left over from
earlier calls: each row of a result must depend on the same row of the arguments alone.

All graphs of a recorder share one memory pool, since no two of them ever run at the same time: the
engine thread replays them one after another on one stream. vLLM keeps a pool of its own for its
backbones' graphs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.device import on_device

WARM_UP_RUNS = 2
"""Runs before a capture, in which libraries choose their kernels and take their workspaces."""

Tensors = tuple[torch.Tensor, ...]

RowFunction = Callable[..., Tensors]
"""A pure function of tensors whose first dimension is the batch, to tensors of the same batch."""

RowSignature = tuple[tuple[torch.Size, torch.dtype], ...]
"""Shape of one row and dtype, by argument."""


class Graph(Protocol):
    """What was captured."""

    def replay(self) -> None:
        """Does it again, on the same tensors."""


class Recorder(Protocol):
    """Captures graphs."""

    def record(self, run: Callable[[], object]) -> Graph:
        """Runs a function of tensors that stay, and captures what it does."""


class CudaRecorder:
    """Captures CUDA graphs of one GPU, on a stream and in a memory pool of its own."""

    def __init__(self, device: torch.device) -> None:
        """Takes the stream and the pool."""
        self._device = device
        self._stream = torch.cuda.Stream(device)
        with on_device(str(device)):
            self._pool = torch.cuda.graph_pool_handle()

    def record(self, run: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """Warms up, then captures.

        Other threads may use the GPU meanwhile: only this one's calls are held to what a capture
        allows.
        """
        with on_device(str(self._device)):
            graph = torch.cuda.CUDAGraph()
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                for _ in range(WARM_UP_RUNS):
                    run()
                self._stream.synchronize()
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    run()
                finally:
                    graph.capture_end()
            torch.cuda.current_stream().wait_stream(self._stream)
        return graph


@dataclass(frozen=True, slots=True)
class _Captured:
    """The graphs for arguments of one shape.

    Attributes:
        inputs: The arguments' buffers, as many rows as the largest batch has.
        outputs: The results' buffers.
        graphs: By batch size; each works on the first rows of the buffers.
    """

    inputs: Tensors
    outputs: Tensors
    graphs: dict[int, Graph]


class GraphedFunction:
    """A pure function whose captured batch sizes are replayed, and which else runs as it is.

    Attributes:
        batch_sizes: The captured batch sizes, ascending; empty where nothing is captured.
    """

    def __init__(
        self,
        function: RowFunction,
        batch_sizes: Iterable[int],
        device: torch.device,
        recorder: Recorder | None = None,
    ) -> None:
        """Wraps a function; nothing is captured yet.

        Args:
            function: See `RowFunction`. It must not wait for the device.
            batch_sizes: The batch sizes to capture.
            device: Where it computes. On the CPU it always runs as it is.
            recorder: Captures; functions that never run at the same time may share one. None: one
                of its own for a GPU.
        """
        self._function = function
        self._device = device
        if recorder is None and device.type == "cuda":
            recorder = CudaRecorder(device)
        self._recorder = recorder
        self.batch_sizes = () if recorder is None else tuple(sorted(set(batch_sizes)))
        self._captured: dict[RowSignature, _Captured] = {}

    def size_for(self, batch: int) -> int | None:
        """The batch size that is replayed for a batch; None: it runs as it is."""
        at = bisect_left(self.batch_sizes, batch)
        return self.batch_sizes[at] if at < len(self.batch_sizes) else None

    @torch.inference_mode()
    def capture(self, *example: torch.Tensor) -> None:
        """Captures every batch size for arguments of one shape.

        Where several shapes are captured, the largest should come first: the others then find
        room in its memory.

        Args:
            example: The arguments of a batch of one, with valid values.
        """
        signature = _signature(example)
        if self._recorder is None or not self.batch_sizes or signature in self._captured:
            return
        largest = self.batch_sizes[-1]
        with on_device(str(self._device)):
            inputs = tuple(
                argument.to(self._device).repeat(largest, *[1] * (argument.dim() - 1))
                for argument in example
            )
            outputs = tuple(torch.empty_like(result) for result in self._function(*inputs))
            graphs = {
                size: self._record(self._recorder, inputs, outputs, size)
                for size in reversed(self.batch_sizes)
            }
        self._captured[signature] = _Captured(inputs, outputs, graphs)

    def _record(self, recorder: Recorder, inputs: Tensors, outputs: Tensors, size: int) -> Graph:
        def run() -> None:
            results = self._function(*(buffer[:size] for buffer in inputs))
            for buffer, result in zip(outputs, results, strict=True):
                buffer[:size].copy_(result)

        return recorder.record(run)

    @torch.inference_mode()
    def __call__(self, *arguments: torch.Tensor) -> Tensors:
        """The function's results.

        Args:
            arguments: On the device, or in pinned memory, from which they are copied without
                waiting.

        Returns:
            Tensors on the device. They may be overwritten by the next call.
        """
        batch = len(arguments[0])
        size = self.size_for(batch)
        captured = self._captured.get(_signature(arguments))
        with on_device(str(self._device)):
            if size is None or captured is None:
                placed = (a.to(self._device, non_blocking=True) for a in arguments)
                return self._function(*placed)
            for buffer, argument in zip(captured.inputs, arguments, strict=True):
                buffer[:batch].copy_(argument, non_blocking=True)
            captured.graphs[size].replay()
        return tuple(buffer[:batch] for buffer in captured.outputs)


def _signature(arguments: Tensors) -> RowSignature:
    return tuple((argument.shape[1:], argument.dtype) for argument in arguments)
