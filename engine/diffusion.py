"""One replica of a diffusion stage: an iterative denoiser, batched over requests step by step.

A step of the stage is one evaluation of the denoiser for every request that takes part, each at
its own place on its own trajectory. So a request joins the batch at once, leaves it at once when
it is cancelled, and is left out while it has no credit; nobody waits for another's last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.deploy_config import StageDeployment
from engine.diffusion_cache import StepCacheCount, StepCachePolicy
from engine.diffusion_module import CapturedDenoiser, DiffusionInput, DiffusionModule
from engine.diffusion_scheduler import DiffusionRequest, OmniDiffusionScheduler
from engine.diffusion_segments import SegmentPolicy
from engine.errors import ConfigurationError
from engine.faults import STAGE_FAULTS
from engine.request import SpeechParameters


@dataclass(frozen=True, slots=True)
class DiffusionOutput:
    """What a step gave one request.

    Attributes:
        request_id: Whose it is.
        finished: Whether it is the request's last.
        payload: What the module made, if the step completed a segment.
        fault: Why the request ends here, if its own part failed.
    """

    request_id: str
    finished: bool
    payload: Any | None = None
    fault: Exception | None = None

    @property
    def output(self) -> Any | None:
        """The payload; where the request's own part failed, the fault is raised to who asks."""
        if self.fault is not None:
            raise self.fault
        return self.payload


@dataclass(slots=True)
class DiffusionReplica:
    """A denoiser and its requests.

    Attributes:
        module: The denoiser.
        scheduler: Who takes part in a step.
        input_limit: The most units of a request that wait to be denoised.
        cache: When results are used again; None: never.
        count: How many evaluations were computed and spared.
        requests: By identifier.
    """

    module: DiffusionModule
    scheduler: OmniDiffusionScheduler
    input_limit: int
    cache: StepCachePolicy | None = None
    count: StepCacheCount = field(default_factory=StepCacheCount)
    requests: dict[str, DiffusionRequest] = field(default_factory=dict)

    @classmethod
    def of(cls, module: DiffusionModule, deployment: StageDeployment) -> DiffusionReplica:
        """A replica of a module as a deployment asks for it.

        Raises:
            ConfigurationError: A request may hold less input than its largest segment takes, so
                that it would wait for ever; or the module cannot be captured as it asks.
        """
        diffusion = deployment.diffusion
        policy = SegmentPolicy.of(diffusion, module.block_units)
        largest = policy.largest_units
        if largest is not None and deployment.input_limit < largest:
            raise ConfigurationError(
                f"input_limit is {deployment.input_limit}; it must be at least the units of a "
                f"largest segment and its look-ahead, {largest}."
            )
        if deployment.cuda_graphs:
            counts = policy.usual_blocks(deployment.cuda_graphs, diffusion.step_units)
            if not counts or not isinstance(module, CapturedDenoiser):
                raise ConfigurationError(
                    f"cuda_graphs is {deployment.cuda_graphs}, but this stage has no network that "
                    "can be captured, or no usual size without diffusion.look_ahead_blocks; leave "
                    "it out."
                )
            module.capture(counts)
        scheduler = OmniDiffusionScheduler(policy, deployment.max_requests, diffusion.step_units)
        cache = StepCachePolicy.of(diffusion.cache)
        return cls(module, scheduler, deployment.input_limit, cache)

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request.

        Raises:
            ValueError: It is open already.
        """
        if request_id in self.requests:
            raise ValueError(f"Request {request_id!r} is open already.")
        self.requests[request_id] = DiffusionRequest(request_id, self.module.open(parameters))

    def wants_input(self, request_id: str) -> bool:
        """Whether more input should be given before the next step."""
        request = self.requests[request_id]
        in_one_piece = self.scheduler.policy.largest_units is None
        return in_one_piece or request.known - request.denoised < self.input_limit

    def offer(self, request_id: str, payload: DiffusionInput) -> None:
        """Takes input in.

        Raises:
            ValueError: The module cannot denoise it, or it is denoised in one piece and longer
                than the limit.
        """
        request = self.requests[request_id]
        waiting = request.known + payload.units - request.denoised
        if self.scheduler.policy.largest_units is None and waiting > self.input_limit:
            raise ValueError(
                f"The input is longer than the {self.input_limit} units that are denoised in one "
                "piece; raise input_limit, or set diffusion.look_ahead_blocks."
            )
        self.module.accept(request.state, payload)
        request.known += payload.units

    def close_input(self, request_id: str) -> None:
        """Ends a request's input."""
        self.requests[request_id].closed = True

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        """Says whether the request's output may grow."""
        self.requests[request_id].has_credit = has_credit

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        """Requests that would take part in a step now, whatever their slack."""
        del slacks
        return [i for i, request in self.requests.items() if self.scheduler.due(request)]

    @property
    def needs_cleaning(self) -> bool:
        """Nothing of an aborted request is left behind."""
        return False

    def step(self, slacks: Mapping[str, float]) -> list[DiffusionOutput]:
        """One evaluation for the requests that the scheduler chose."""
        chosen = self.scheduler.schedule(self.requests, slacks)
        ended = [output for request in chosen if (output := self._begin(request)) is not None]
        active = [request for request in chosen if request.segment is not None]
        self._advance(active)
        finished = [output for request in active if (output := self._finish(request)) is not None]
        return ended + finished

    def _begin(self, request: DiffusionRequest) -> DiffusionOutput | None:
        """Begins the next segment where none is at work; ends a request that has none left."""
        if request.segment is not None:
            return None
        segment = self.scheduler.segment(request)
        if segment is None:
            return self._end(request, None)
        try:
            request.trajectory = self.module.begin(request.state, segment)
        except STAGE_FAULTS as fault:
            return self._end(request, fault)
        request.segment, request.evaluation, request.reused = segment, 0, 0
        return None

    def _advance(self, active: list[DiffusionRequest]) -> None:
        spared = self._spared(active)
        computed = [request for request in active if request.request_id not in spared]
        reusing = [request for request in active if request.request_id in spared]
        if computed:
            self.module.evaluate([request.item() for request in computed])
        if reusing:
            self.module.reuse([request.item() for request in reusing])
        for request in active:
            request.evaluation += 1
            request.reused = request.reused + 1 if request.request_id in spared else 0
        self.count.computed += len(computed)
        self.count.reused += len(reusing)

    def _spared(self, active: list[DiffusionRequest]) -> set[str]:
        """The requests for which an older result stands in in this step."""
        if self.cache is None or not active:
            return set()
        changes = self.module.changes([request.item() for request in active])
        return {
            request.request_id
            for request, change in zip(active, changes, strict=True)
            if request.evaluation and self.cache.reuses(change, request.reused)
        }

    def _finish(self, request: DiffusionRequest) -> DiffusionOutput | None:
        """Gives a segment out once its last evaluation is done."""
        segment = request.segment
        if segment is None or request.evaluation < self.module.evaluations:
            return None
        try:
            payload = self.module.finish(request.state, segment, request.trajectory)
        except STAGE_FAULTS as fault:
            return self._end(request, fault)
        request.denoised = segment.end
        request.segments += 1
        request.segment = request.trajectory = None
        if request.spent:
            del self.requests[request.request_id]
        finished = request.request_id not in self.requests
        return DiffusionOutput(request.request_id, finished, payload)

    def _end(self, request: DiffusionRequest, fault: Exception | None) -> DiffusionOutput:
        del self.requests[request.request_id]
        return DiffusionOutput(request.request_id, finished=True, fault=fault)

    def abort(self, request_id: str) -> None:
        """Forgets a request, its trajectory with it; idempotent."""
        self.requests.pop(request_id, None)

    def close(self) -> None:
        """Forgets everything."""
        self.requests.clear()
