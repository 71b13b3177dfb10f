"""The scheduler inside diffusion stages: who takes part in a step (pure logic)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.diffusion_module import DenoisingItem
from engine.diffusion_segments import Segment, SegmentPolicy


@dataclass(slots=True)
class DiffusionRequest:
    """What the replica keeps of one request.

    Attributes:
        request_id: Its identifier.
        state: The module's.
        known: Units of input that have arrived.
        denoised: Units whose result was given out.
        segments: Segments that were given out.
        closed: Whether the input has ended.
        has_credit: Whether its output may grow.
        segment: What is being denoised, if anything.
        trajectory: The module's, for the segment.
        evaluation: Evaluations of the segment that are done.
        reused: How many of the last of them were not computed.
    """

    request_id: str
    state: Any
    known: int = 0
    denoised: int = 0
    segments: int = 0
    closed: bool = False
    has_credit: bool = True
    segment: Segment | None = None
    trajectory: Any = None
    evaluation: int = 0
    reused: int = 0

    @property
    def spent(self) -> bool:
        """Whether the input has ended and all of it was denoised."""
        return self.closed and self.denoised == self.known

    def item(self) -> DenoisingItem:
        """Its part of a step."""
        return DenoisingItem(self.state, self.trajectory, self.evaluation)


@dataclass(frozen=True, slots=True)
class OmniDiffusionScheduler:
    """Chooses who takes part in a step.

    Everyone who has credit and a segment to work on does, as far as the batch has room, whatever
    their places on their trajectories; who is closest to an underrun goes first.

    Attributes:
        policy: Where segments begin and end.
        maximum_requests: The most requests in a step.
        maximum_units: The most units in a step; the most urgent request takes part in any case.
    """

    policy: SegmentPolicy
    maximum_requests: int
    maximum_units: int

    def segment(self, request: DiffusionRequest) -> Segment | None:
        """What the request works on or would begin now."""
        if request.segment is not None:
            return request.segment
        return self.policy.following(
            request.segments, request.denoised, request.known, request.closed
        )

    def due(self, request: DiffusionRequest) -> bool:
        """Whether the request can take part in a step."""
        return request.has_credit and (request.spent or self.segment(request) is not None)

    def schedule(
        self, requests: Mapping[str, DiffusionRequest], slacks: Mapping[str, float]
    ) -> list[DiffusionRequest]:
        """The requests of the next step, most urgent first; empty if none is due."""
        due = [request for request in requests.values() if self.due(request)]
        due.sort(key=lambda request: slacks.get(request.request_id, 0.0))
        chosen: list[DiffusionRequest] = []
        units = 0
        for request in due[: self.maximum_requests]:
            segment = self.segment(request)
            units += 0 if segment is None else segment.units
            if chosen and units > self.maximum_units:
                break
            chosen.append(request)
        return chosen
