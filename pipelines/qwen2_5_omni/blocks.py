"""Segments of many requests packed into one run of attention blocks (index logic).

The denoiser's attention sees whole blocks: a frame attends to its own block and, in some layers,
to the block before or behind. So a batch needs no padding to its longest segment: the blocks of
all segments stand in one row, and each knows its neighbours by index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional

BRANCHES = 2
"""With and without conditioning, for guidance."""


class BlockPlan(NamedTuple):
    """What the network must know of each block; every member int64 or bool, shape [blocks].

    Attributes:
        evaluation: Which evaluation this is.
        position: The block's first frame in its utterance.
        frames: How many of its frames are some.
        before: The block before in its segment; itself where there is none.
        behind: The block behind in its segment; itself where there is none.
        has_before: Whether there is a block before in its segment.
        has_kept: Whether something was kept of the segment before, which this block sees.
        has_behind: Whether there is a block behind in its segment.
    """

    evaluation: torch.Tensor
    position: torch.Tensor
    frames: torch.Tensor
    before: torch.Tensor
    behind: torch.Tensor
    has_before: torch.Tensor
    has_kept: torch.Tensor
    has_behind: torch.Tensor

    @classmethod
    def of_rows(cls, rows: torch.Tensor) -> BlockPlan:
        """From rows as `Packing.rows` makes them.

        Rows that are left over from a larger batch may name neighbours that are not there; what
        they see does not matter.
        """
        numbers, neighbours = rows[:, :3].unbind(1), rows[:, 3:5].clamp(max=len(rows) - 1).unbind(1)
        return cls(*numbers, *neighbours, *rows[:, 5:].bool().unbind(1))


@dataclass(frozen=True, slots=True)
class PackedSegment:
    """A segment to be packed.

    Attributes:
        length: Its frames.
        evaluation: Which evaluation of it is due.
        start: Its first frame in its utterance.
        has_kept: Whether something was kept of the segment before.
    """

    length: int
    evaluation: int
    start: int
    has_kept: bool


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the blocks of a batch's segments stand.

    Attributes:
        segments: The segments, in order.
        block_size: Frames in a block.
    """

    segments: Sequence[PackedSegment]
    block_size: int

    @property
    def counts(self) -> list[int]:
        """Blocks of each segment."""
        return [-(-segment.length // self.block_size) for segment in self.segments]

    @property
    def first_blocks(self) -> list[int]:
        """The first block of each segment."""
        counts = self.counts
        return [sum(counts[:index]) for index in range(len(counts))]

    def rows(self) -> torch.Tensor:
        """The blocks' plan, members of `BlockPlan` as columns, int64, shape [blocks, columns]."""
        rows: list[tuple[int, ...]] = []
        for segment, count, first in zip(
            self.segments, self.counts, self.first_blocks, strict=True
        ):
            for index in range(count):
                block, offset = first + index, index * self.block_size
                opens, closes = index == 0, index == count - 1
                rows.append(
                    (
                        segment.evaluation,
                        segment.start + offset,
                        min(segment.length - offset, self.block_size),
                        block if opens else block - 1,
                        block if closes else block + 1,
                        not opens,
                        opens and segment.has_kept,
                        not closes,
                    )
                )
        return torch.tensor(rows)

    def pack(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """Segments' [..., frames, width] as blocks [blocks, ..., block size, width]."""
        blocks = []
        for part in parts:
            padded = functional.pad(part, (0, 0, 0, -part.shape[-2] % self.block_size))
            blocks.append(padded.unflatten(-2, (-1, self.block_size)).movedim(-3, 0))
        return torch.cat(blocks)

    def unpack(self, blocks: torch.Tensor) -> list[torch.Tensor]:
        """Blocks [blocks, block size, width] as segments' [frames, width], in memory of theirs."""
        return [
            part.flatten(0, 1)[: segment.length].clone()
            for part, segment in zip(blocks.split(self.counts), self.segments, strict=True)
        ]
