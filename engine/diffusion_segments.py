"""How a request of a diffusion stage is cut into segments (pure logic).

A segment is what is denoised in one go. Where segments begin and how far each looks ahead follows
from the deployment alone and never from when input arrives, from the listener or from who else is
in the batch: the samples of a request are the same however it is streamed (invariant 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.deploy_config import DiffusionDeployment


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of units that is denoised in one go.

    Attributes:
        start: Its first unit, counted from the request's beginning.
        keep: Units whose result is final.
        look_ahead: Units behind them that are denoised along and then thrown away; the next
            segment begins with them.
    """

    start: int
    keep: int
    look_ahead: int

    @property
    def units(self) -> int:
        """Units that are denoised."""
        return self.keep + self.look_ahead

    @property
    def end(self) -> int:
        """The first unit of the next segment."""
        return self.start + self.keep


@dataclass(frozen=True, slots=True)
class SegmentPolicy:
    """Sizes of segments, in blocks of the module's attention.

    Attributes:
        block_units: Units in a block.
        first_blocks: Size of the first segment: small, for an early first sound.
        maximum_blocks: No segment is larger.
        growth: Ratio of a segment to the one before, rounded up to whole blocks.
        look_ahead_blocks: How far a segment looks ahead; None: the whole input is one segment.
    """

    block_units: int
    first_blocks: int
    maximum_blocks: int
    growth: float
    look_ahead_blocks: int | None

    @classmethod
    def of(cls, deployment: DiffusionDeployment, block_units: int) -> SegmentPolicy:
        """The policy that a deployment asks for."""
        return cls(
            block_units,
            deployment.first_blocks,
            deployment.maximum_blocks,
            deployment.growth,
            deployment.look_ahead_blocks,
        )

    @property
    def largest_units(self) -> int | None:
        """Units of the largest segment with its look-ahead; None: as many as the input has."""
        if self.look_ahead_blocks is None:
            return None
        return (self.maximum_blocks + self.look_ahead_blocks) * self.block_units

    def usual_blocks(self, requests: Sequence[int], step_units: int) -> list[int]:
        """Blocks in a step of so many requests, their segments all smallest or all largest.

        Args:
            requests: How many requests.
            step_units: The most units in a step, unless one segment alone has more.

        Returns:
            Ascending; empty if the whole input is one segment.
        """
        if self.look_ahead_blocks is None:
            return []
        segments = [
            size + self.look_ahead_blocks for size in (self.first_blocks, self.maximum_blocks)
        ]
        most = max(step_units // self.block_units, segments[-1])
        return sorted({min(count * size, most) for count in requests for size in segments})

    def keep_units(self, index: int) -> int:
        """Units that segment number `index` keeps, if the input is long enough."""
        blocks = self.first_blocks
        for _ in range(index):
            if blocks >= self.maximum_blocks:
                break
            blocks = math.ceil(blocks * self.growth)
        return min(blocks, self.maximum_blocks) * self.block_units

    def following(self, index: int, start: int, known: int, closed: bool) -> Segment | None:
        """Segment number `index`, if enough of the input is known.

        Args:
            index: How many segments there were.
            start: The unit with which it begins.
            known: Units of the input that have arrived, counted from its beginning.
            closed: Whether no more will come.

        Returns:
            The segment; None while more input is needed, or when everything was denoised.
        """
        left = known - start
        if self.look_ahead_blocks is None:
            return Segment(start, left, 0) if closed and left else None
        keep = self.keep_units(index)
        look_ahead = self.look_ahead_blocks * self.block_units
        if not left or (left < keep + look_ahead and not closed):
            return None
        keep = min(keep, left)
        return Segment(start, keep, min(look_ahead, left - keep))
