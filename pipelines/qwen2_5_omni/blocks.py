"""Segments of many requests packed into one run of attention blocks (pure index logic).

The denoiser's attention sees whole blocks: a frame attends to its own block and, in some layers,
to the block before or behind. So a batch needs no padding to its longest segment: the blocks of
all segments stand in one row, and each knows its neighbours by index.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

BRANCHES = 2
"""With and without conditioning, for guidance."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the blocks of a batch's segments stand; every index counts in one branch.

    Attributes:
        block_size: Frames in a block.
        lengths: Frames of each segment.
        counts: Blocks of each segment.
        item_of: The segment of each block, int64, shape [blocks].
        before: The block before each; where there is none, `blocks` plus the segment's index.
        behind: The block behind each; where there is none, `blocks`.
        valid: Whether each frame is one, bool, shape [blocks, block size].
    """

    block_size: int
    lengths: tuple[int, ...]
    counts: tuple[int, ...]
    item_of: torch.Tensor
    before: torch.Tensor
    behind: torch.Tensor
    valid: torch.Tensor

    @classmethod
    def of(cls, lengths: list[int], block_size: int, device: torch.device) -> Packing:
        """The packing of segments with these lengths in frames."""
        counts = [-(-length // block_size) for length in lengths]
        total = sum(counts)
        item_of: list[int] = []
        before: list[int] = []
        behind: list[int] = []
        for item, count in enumerate(counts):
            first = len(item_of)
            item_of += [item] * count
            before += [total + item, *range(first, first + count - 1)]
            behind += [*range(first + 1, first + count), total]
        frames = torch.arange(block_size)
        left = torch.cat(
            [
                length - block_size * torch.arange(count)
                for length, count in zip(lengths, counts, strict=True)
            ]
        )
        return cls(
            block_size,
            tuple(lengths),
            tuple(counts),
            torch.tensor(item_of, device=device),
            torch.tensor(before, device=device),
            torch.tensor(behind, device=device),
            (frames[None] < left[:, None]).to(device),
        )

    @property
    def blocks(self) -> int:
        """Blocks of one branch."""
        return len(self.item_of)

    @property
    def full(self) -> bool:
        """Whether no block is filled up."""
        return all(length % self.block_size == 0 for length in self.lengths)

    def pack(self, segments: list[torch.Tensor]) -> torch.Tensor:
        """Segments [branches, frames, width] as blocks [branches * blocks, block size, width]."""
        padded = [
            torch.nn.functional.pad(segment, (0, 0, 0, -segment.shape[-2] % self.block_size))
            for segment in segments
        ]
        packed = torch.cat(padded, dim=-2)
        return packed.reshape(-1, self.block_size, packed.shape[-1])

    def unpack(self, blocks: torch.Tensor) -> list[torch.Tensor]:
        """Blocks [branches * blocks, block size, width] as segments [branches, frames, width]."""
        width = blocks.shape[-1]
        frames = blocks.reshape(-1, self.blocks * self.block_size, width)
        parts = frames.split([count * self.block_size for count in self.counts], dim=1)
        return [part[:, :length] for part, length in zip(parts, self.lengths, strict=True)]

    def first_block(self, item: int) -> int:
        """The index of a segment's first block."""
        return sum(self.counts[:item])


def branched(index: torch.Tensor, blocks: int) -> torch.Tensor:
    """An index into one branch's rows as one into all branches', laid out one after the other.

    Args:
        index: int64, shape [n], below `blocks`.
        blocks: Rows of one branch.
    """
    return torch.cat([index + branch * blocks for branch in range(BRANCHES)])
