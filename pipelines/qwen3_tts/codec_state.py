"""The state of streamed requests in one flat row each, so that a batch is one stack of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import torch


@dataclass(frozen=True, slots=True)
class Slot:
    """One part of the state, shape `shape` for a request, at `start` of its row."""

    start: int
    shape: tuple[int, ...]

    def view(self, rows: torch.Tensor) -> torch.Tensor:
        """This part of a batch's rows [requests, width], shape [requests, *shape]."""
        part = rows[:, self.start : self.start + prod(self.shape)]
        return part.view(len(rows), *self.shape)


@dataclass(slots=True)
class StateLayout:
    """Gives every layer its slot; filled while the modules are built."""

    width: int = 0
    slots: list[Slot] = field(default_factory=list)

    def reserve(self, *shape: int) -> Slot:
        """A slot for a part of that shape."""
        slot = Slot(self.width, shape)
        self.width += prod(shape)
        self.slots.append(slot)
        return slot


@dataclass(slots=True)
class StreamStep:
    """What the layers of one step share.

    The requests of a step have as many frames as the longest; what lies behind a shorter one's
    end is computed and dropped, and never enters its state.

    Attributes:
        rows: The requests' states, shape [requests, width]; layers write theirs.
        frames: Frames of each request, on the CPU.
        positions: Frames that each request had before, int64, shape [requests].
    """

    rows: torch.Tensor
    frames: list[int]
    positions: torch.Tensor

    def extend(self, slot: Slot, values: torch.Tensor, units: int) -> torch.Tensor:
        """What a slot holds, then the new values, along the last axis; keeps the new tail.

        Args:
            slot: Holds the last values that came before, shape [channels, kept].
            values: Shape [requests, channels, time].
            units: Values a frame at this layer.

        Returns:
            Shape [requests, channels, kept + time].
        """
        past = slot.view(self.rows)
        joined = torch.cat([past, values], dim=-1)
        kept = slot.shape[-1]
        if len(set(self.frames)) == 1:
            past.copy_(joined[..., joined.shape[-1] - kept :])
        else:
            for row, (state, whole) in enumerate(zip(past, joined, strict=True)):
                end = self.frames[row] * units
                state.copy_(whole[..., end : end + kept])
        return joined
