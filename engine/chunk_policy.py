"""How much a chunked stage does at a time: a small first chunk, then growing ones (pure logic).

The aim is a first sound as soon as there is enough to decode, then chunks that grow by a bounded
factor, since large chunks are cheaper. What bounds the growth is the listener: a chunk must be
ready before the audio it follows has been played.
"""

from __future__ import annotations

from dataclasses import dataclass

LOW_SLACK = 0.15
"""Seconds before an underrun at which nothing is waited for any more."""


@dataclass(frozen=True, slots=True)
class ChunkPolicy:
    """Chunk sizes of a stage, in its units.

    Attributes:
        first_units: Size of the first chunk.
        maximum_units: No chunk is larger.
        growth: Largest ratio of a chunk to the one before.
        unit_seconds: How long one unit plays.
        first_units_more: What every other request adds to the first chunk: where many are served,
            the second comes later.
    """

    first_units: int
    maximum_units: int
    growth: float
    unit_seconds: float
    first_units_more: int = 0

    def __post_init__(self) -> None:
        """Checks that sizes can grow."""
        if not 1 <= self.first_units <= self.maximum_units:
            raise ValueError(
                f"first_units is {self.first_units}; it must be from 1 to {self.maximum_units}."
            )
        if self.growth <= 1.0:
            raise ValueError(f"growth is {self.growth}; it must be above 1.")

    @property
    def usual_units(self) -> list[int]:
        """The sizes that chunks grow through from the first to the largest, ascending."""
        sizes = [self.first_units]
        while sizes[-1] < self.maximum_units:
            sizes.append(min(int(sizes[-1] * self.growth) + 1, self.maximum_units))
        return sizes

    def target_units(
        self, previous_units: int, slack: float, seconds_per_unit: float, others: int = 0
    ) -> int:
        """The size of the next chunk.

        Args:
            previous_units: Size of the chunk before; 0 for the first.
            slack: Seconds until the listener would run dry.
            seconds_per_unit: Measured time to make one unit, all stages together.
            others: How many other requests there are.

        Returns:
            Units to wait for. At most `growth` times the chunk before, at most what can be made
            in half of the slack above LOW_SLACK, and at least the first chunk's size.
        """
        if previous_units == 0:
            return min(self.first_units + others * self.first_units_more, self.maximum_units)
        grown = int(previous_units * self.growth) + 1
        affordable = int(0.5 * max(slack - LOW_SLACK, 0.0) / max(seconds_per_unit, 1e-6))
        return max(self.first_units, min(grown, affordable, self.maximum_units))


@dataclass(slots=True)
class MovingAverage:
    """An exponentially weighted mean of measurements.

    Attributes:
        value: The mean; the first measurement replaces it.
        weight: How much a new measurement counts.
    """

    value: float
    weight: float = 0.1
    measured: bool = False

    def add(self, measurement: float) -> None:
        """Takes one measurement in."""
        if self.measured:
            self.value += self.weight * (measurement - self.value)
        else:
            self.value = measurement
            self.measured = True
