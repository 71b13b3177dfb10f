"""Streams of codes through a causal decoder, in batches: what Qwen's Code2Wav stages share."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.cuda_graphs import GraphedFunction, Recorder, Tensors
from engine.device import to_device, to_host

Samples = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

Advance = Callable[..., Tensors]
"""Decodes a step: codes int64 [requests, frames, codebooks], the requests' states [requests,
width], their frames before, int64 [requests], and their frames now, int64 [requests], which are
left out where all have as many. Gives samples [requests, samples] and the states afterwards."""


PASS_FRAMES = 32
"""Frames that a processor decodes in one pass, padding included. What the last layers make of more
does not fit its caches, and is given back to the system and asked for again at every operation."""


@dataclass(slots=True)
class StreamState:
    """A request's state.

    Attributes:
        row: What the layers keep, shape [width].
        frames: Frames so far.
    """

    row: torch.Tensor
    frames: int = 0


class CodecStream:
    """A decoder that requests stream through, several in one step."""

    def __init__(
        self, advance: Advance, codebooks: int, frame_samples: int, device: torch.device
    ) -> None:
        """Takes a decoder.

        Args:
            advance: Decodes a step.
            codebooks: Codes of a frame.
            frame_samples: Samples of a frame.
            device: Where the decoder works.
        """
        self._advance = GraphedFunction(advance, (), device)
        self._function = advance
        self._codebooks = codebooks
        self._frame_samples = frame_samples
        self._device = device
        self._lengths: list[int] = []

    def capture(
        self,
        row: torch.Tensor,
        lengths: Sequence[int],
        batch_sizes: Sequence[int],
        recorder: Recorder | None,
    ) -> None:
        """Captures steps.

        Args:
            row: A request's state, shape [width].
            lengths: Frames of a step; a shorter one is filled up to the next.
            batch_sizes: Requests of a step.
            recorder: See `GraphedFunction`.
        """
        graphed = GraphedFunction(self._function, batch_sizes, self._device, recorder)
        if not graphed.batch_sizes:
            return
        self._advance, self._lengths = graphed, sorted(lengths)
        for length in reversed(self._lengths):
            codes = torch.zeros(1, length, self._codebooks, dtype=torch.long)
            graphed.capture(codes, row[None], torch.zeros(1).long(), torch.tensor([length]))

    def step(self, states: list[StreamState], codes: list[Codes], lost: int = 0) -> list[Samples]:
        """Samples of some frames of each request.

        Args:
            states: The requests' states, which are advanced.
            codes: Of each request, int64, shape [frames, codebooks].
            lost: Samples that each has less than those of its frames.
        """
        sounds: list[Samples] = [np.zeros(0, np.float32)] * len(states)
        for group in self._passes([len(part) for part in codes]):
            chosen = [states[index] for index in group], [codes[index] for index in group]
            for index, sound in zip(group, self._pass(*chosen), strict=True):
                sounds[index] = sound[: len(codes[index]) * self._frame_samples - lost].copy()
        return sounds

    def _passes(self, counts: list[int]) -> list[list[int]]:
        """Who is decoded together, by their frames: all on a GPU, like with like on a processor."""
        if self._device.type != "cpu" or self._lengths:
            return [list(range(len(counts)))]
        passes: list[list[int]] = []
        for index in sorted(range(len(counts)), key=counts.__getitem__):
            if not passes or (len(passes[-1]) + 1) * counts[index] > PASS_FRAMES:
                passes.append([])
            passes[-1].append(index)
        return passes

    def _pass(self, states: list[StreamState], codes: list[Codes]) -> Samples:
        """Samples of all, with those of the padding, shape [requests, samples]."""
        counts = [len(part) for part in codes]
        rows = torch.stack([state.row for state in states])
        arguments = self._arguments(states, codes, counts)
        samples, kept = self._advance(arguments[0], rows, *arguments[1:])
        for state, row, count in zip(states, kept, counts, strict=True):
            # A copy: a row of the batch would keep the whole batch's states alive.
            state.row = row.clone()
            state.frames += count
        (on_host,) = to_host(samples)
        made: Samples = on_host.numpy()
        return made

    def _arguments(
        self, states: list[StreamState], codes: list[Codes], counts: list[int]
    ) -> list[torch.Tensor]:
        """Codes, frames before and frames now, on the device."""
        captured = self._advance.size_for(len(states)) is not None
        length = max(counts)
        if captured and length <= self._lengths[-1]:
            length = self._lengths[bisect_left(self._lengths, length)]
        padded = np.zeros((len(codes), length, self._codebooks), np.int64)
        for row, part in zip(padded, codes, strict=True):
            row[: len(part)] = part
        arguments = [
            torch.from_numpy(padded),
            torch.tensor([state.frames for state in states]),
        ]
        if captured or min(counts) < length:
            arguments.append(torch.tensor(counts))
        return [to_device(argument, self._device) for argument in arguments]
