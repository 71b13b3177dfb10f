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
        rows: The requests' states, shape [requests, width].
        positions: Frames that each request had before, int64, shape [requests].
        frames: Frames of each request, int64, shape [requests]; None: all have as many.
        kept: The requests' states behind their frames, shape of `rows`; layers write theirs.
    """

    rows: torch.Tensor
    positions: torch.Tensor
    frames: torch.Tensor | None
    kept: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Makes room for the new states."""
        self.kept = torch.empty_like(self.rows)

    def lost(self, units: int) -> int:
        """How many values of a layer with `units` values a frame the step has less than that."""
        del units
        return 0

    def extend(self, slot: Slot, values: torch.Tensor, units: int) -> torch.Tensor:
        """What a slot holds, then the new values, along the last axis; keeps the new tail.

        Args:
            slot: Holds the last values that came before, shape [channels, kept].
            values: Shape [requests, channels, time].
            units: Values a frame at this layer.

        Returns:
            Shape [requests, channels, kept + time].
        """
        joined = torch.cat([slot.view(self.rows), values], dim=-1)
        kept = slot.view(self.kept)
        length = slot.shape[-1]
        if self.frames is None:
            kept.copy_(joined[..., joined.shape[-1] - length :])
        else:
            ends = self.frames * units - self.lost(units)
            places = ends[:, None] + torch.arange(length, device=joined.device)
            kept.copy_(joined.gather(-1, places[:, None].expand_as(kept)))
        return joined
