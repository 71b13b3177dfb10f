"""What a denoiser must offer to be a diffusion stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from engine.diffusion_segments import Segment
from engine.request import SpeechParameters


@dataclass(frozen=True, slots=True)
class DiffusionInput:
    """Input of a diffusion stage.

    Attributes:
        units: How many of the stage's units (codes, say) `data` holds.
        data: What the stage's module reads.
    """

    units: int
    data: Any


@dataclass(frozen=True, slots=True)
class DenoisingItem:
    """One request's part of a step.

    Attributes:
        state: What `DiffusionModule.open` made for the request.
        trajectory: What `DiffusionModule.begin` made for the segment.
        evaluation: Which evaluation of the segment is due, from 0.
    """

    state: Any
    trajectory: Any
    evaluation: int


class DiffusionModule(Protocol):
    """A denoiser that works segment by segment, with per-request state, in batches.

    What `accept`, `begin` and `finish` raise ends the one request; what the others raise ends the
    replica, since they work on the whole batch.
    """

    @property
    def block_units(self) -> int:
        """Units in one block of the denoiser's attention; segments are whole blocks."""

    @property
    def evaluations(self) -> int:
        """Evaluations from noise to result."""

    def open(self, parameters: SpeechParameters) -> Any:
        """Makes a request's state."""

    def accept(self, state: Any, payload: DiffusionInput) -> None:
        """Takes input in.

        Raises:
            ValueError: It cannot be denoised.
        """

    def begin(self, state: Any, segment: Segment) -> Any:
        """The trajectory of the request's next segment, at its noise."""

    def changes(self, items: list[DenoisingItem]) -> list[float]:
        """How far each item's signal is from that at its last computed evaluation, relatively.

        Only the cache policy asks. Infinite before the first evaluation.
        """

    def evaluate(self, items: list[DenoisingItem]) -> None:
        """Computes one evaluation of each item and advances its trajectory."""

    def reuse(self, items: list[DenoisingItem]) -> None:
        """Advances each item's trajectory with the result of its last evaluation."""

    def finish(self, state: Any, segment: Segment, trajectory: Any) -> Any:
        """The payload of a segment whose every evaluation is done: of the units it keeps."""


@runtime_checkable
class CapturedDenoiser(Protocol):
    """A denoiser whose network can be captured as CUDA graphs."""

    def capture(self, block_counts: Sequence[int]) -> None:
        """Captures evaluations of that many blocks of attention, all requests together."""
