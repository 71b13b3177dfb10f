"""One replica of a generation stage: a chunked, non-autoregressive module batched over requests.

`OmniGenerationScheduler` decides which requests take part in a step and how many units each;
the module does the work. State is kept by request, so that a request's chunks are exact
continuations of each other whatever their sizes and whoever else is in the batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from engine.adapter import GenerationInput
from engine.chunk import AudioPayload, WordTiming
from engine.chunk_policy import ChunkPolicy, MovingAverage
from engine.deploy_config import StageDeployment
from engine.errors import ConfigurationError
from engine.request import SpeechParameters


@dataclass(frozen=True, slots=True)
class GenerationItem:
    """One request's part of a step.

    Attributes:
        state: What `GenerationModule.open` made for the request.
        data: The inputs' data, in order; may be empty on a final item.
        final: Whether the request's input ends here; everything held back must come out.
    """

    state: Any
    data: tuple[Any, ...]
    final: bool


class GenerationModule(Protocol):
    """A decoder that works chunk by chunk, with per-request state, in batches."""

    @property
    def sample_rate(self) -> int:
        """Samples a second."""

    @property
    def unit_samples(self) -> int:
        """Samples that one unit of input becomes."""

    def open(self, parameters: SpeechParameters) -> Any:
        """Makes a request's state."""

    def step(self, items: list[GenerationItem]) -> list[npt.NDArray[np.float32]]:
        """Samples of each item, shape [samples]; each request's follow its earlier ones."""


@runtime_checkable
class CapturedModule(Protocol):
    """A generation module whose networks can be captured as CUDA graphs."""

    def capture(self, units: Sequence[int], batch_sizes: Sequence[int]) -> None:
        """Captures steps of these units, filled up to the next of them, at these batch sizes."""


@dataclass(slots=True)
class GenerationRequest:
    """What the replica keeps of one request."""

    request_id: str
    state: Any
    inputs: deque[GenerationInput] = field(default_factory=deque)
    units: int = 0
    closed: bool = False
    has_credit: bool = True
    previous_units: int = 0
    samples: int = 0
    words: deque[WordTiming] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class GenerationOutput:
    """What a step gave one request."""

    request_id: str
    output: AudioPayload | None
    finished: bool


URGENT_SLACK = 0.5
"""Seconds until its listener runs dry below which a request is not kept waiting by larger ones."""


@dataclass(slots=True)
class OmniGenerationScheduler:
    """Chooses who takes part in a step.

    A request without credit, or with less input than its next chunk wants, is skipped and not
    waited for. Once some request is due, every other with at least the first chunk's size may
    ride along, since a batch costs little more than its largest member; but none that is larger
    than what a listener close to an underrun waits for.

    Attributes:
        policy: Chunk sizes.
        maximum_requests: The most requests in a step.
        seconds_per_unit: Measured time to make one unit.
    """

    policy: ChunkPolicy
    maximum_requests: int
    seconds_per_unit: MovingAverage

    def due(self, request: GenerationRequest, slack: float, others: int = 0) -> bool:
        """Whether the request's next chunk should be made now; `others` counts other requests."""
        if not request.has_credit:
            return False
        if request.closed:
            return True
        target = self.policy.target_units(
            request.previous_units, slack, self.seconds_per_unit.value, others
        )
        return request.units >= target

    def schedule(
        self, requests: Mapping[str, GenerationRequest], slacks: Mapping[str, float]
    ) -> list[GenerationRequest]:
        """The requests of the next step, most urgent first; empty if none is due."""
        others = len(requests) - 1
        due = [r for i, r in requests.items() if self.due(r, slacks.get(i, 0.0), others)]
        if not due:
            return []
        riders = [
            r
            for r in requests.values()
            if r.has_credit
            and r.previous_units
            and r.units >= self.policy.first_units
            and r not in due
        ]
        ordered = sorted(due, key=lambda r: slacks.get(r.request_id, 0.0)) + riders
        urgent = [r.units for r in due if slacks.get(r.request_id, 0.0) < URGENT_SLACK]
        if urgent:
            longest = max(urgent)
            ordered = [r for r in ordered if r.units <= longest]
        return ordered[: self.maximum_requests]


@dataclass(slots=True)
class GenerationReplica:
    """A module and its requests."""

    module: GenerationModule
    scheduler: OmniGenerationScheduler
    input_limit: int
    requests: dict[str, GenerationRequest] = field(default_factory=dict)

    @classmethod
    def of(cls, module: GenerationModule, deployment: StageDeployment) -> GenerationReplica:
        """A replica of a module as a deployment asks for it.

        Raises:
            ConfigurationError: A request may hold less input than its largest chunk takes, so
                that it would wait for ever; or the module cannot be captured as it asks.
        """
        unit_seconds = module.unit_samples / module.sample_rate
        chunk = deployment.chunk
        if deployment.input_limit < chunk.maximum_units:
            raise ConfigurationError(
                f"input_limit is {deployment.input_limit}; it must be at least "
                f"chunk.maximum_units, {chunk.maximum_units}."
            )
        policy = ChunkPolicy(
            chunk.first_units,
            chunk.maximum_units,
            chunk.growth,
            unit_seconds,
            chunk.first_units_more,
        )
        if deployment.cuda_graphs:
            if not isinstance(module, CapturedModule):
                raise ConfigurationError(
                    f"cuda_graphs is {deployment.cuda_graphs}, but this stage has no network that "
                    "can be captured; leave it out."
                )
            module.capture(policy.usual_units, deployment.cuda_graphs)
        scheduler = OmniGenerationScheduler(
            policy, deployment.max_requests, MovingAverage(unit_seconds / 4)
        )
        return cls(module, scheduler, deployment.input_limit)

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        """Opens a request.

        Raises:
            ValueError: It is open already.
        """
        if request_id in self.requests:
            raise ValueError(f"Request {request_id!r} is open already.")
        self.requests[request_id] = GenerationRequest(request_id, self.module.open(parameters))

    def wants_input(self, request_id: str) -> bool:
        """Whether more input should be given before the next step."""
        return self.requests[request_id].units < self.input_limit

    def offer(self, request_id: str, payload: GenerationInput) -> None:
        """Queues input."""
        request = self.requests[request_id]
        request.inputs.append(payload)
        request.units += payload.units
        request.words.extend(payload.words)

    def close_input(self, request_id: str) -> None:
        """Ends a request's input; its next step flushes it."""
        self.requests[request_id].closed = True

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        """Says whether the request's output may grow."""
        self.requests[request_id].has_credit = has_credit

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        """Requests that are due now."""
        due, others = self.scheduler.due, len(self.requests) - 1
        return [i for i, r in self.requests.items() if due(r, slacks.get(i, 0.0), others)]

    @property
    def needs_cleaning(self) -> bool:
        """Nothing of an aborted request is left behind."""
        return False

    def step(self, slacks: Mapping[str, float]) -> list[GenerationOutput]:
        """One step over the requests that the scheduler chose."""
        chosen = self.scheduler.schedule(self.requests, slacks)
        if not chosen:
            return []
        started = time.perf_counter()
        taken = [self._take(request) for request in chosen]
        items = [
            GenerationItem(request.state, data, final)
            for request, (data, _, final) in zip(chosen, taken, strict=True)
        ]
        samples = self.module.step(items)
        units = sum(units for _, units, _ in taken)
        if units:
            self.scheduler.seconds_per_unit.add((time.perf_counter() - started) / units)
        return [
            self._output(request, audio, final)
            for request, audio, (_, _, final) in zip(chosen, samples, taken, strict=True)
        ]

    def _take(self, request: GenerationRequest) -> tuple[tuple[Any, ...], int, bool]:
        """Takes up to the largest chunk; final only with the last of a closed input."""
        data: list[Any] = []
        units = 0
        while request.inputs:
            following = request.inputs[0].units
            if data and units + following > self.scheduler.policy.maximum_units:
                break
            payload = request.inputs.popleft()
            data.append(payload.data)
            units += payload.units
        request.units -= units
        request.previous_units = max(units, self.scheduler.policy.first_units)
        return tuple(data), units, request.closed and not request.inputs

    def _output(
        self, request: GenerationRequest, audio: npt.NDArray[np.float32], final: bool
    ) -> GenerationOutput:
        request.samples += len(audio)
        heard = request.samples / self.module.sample_rate
        words: list[WordTiming] = []
        while request.words and (request.words[0].start < heard or final):
            words.append(request.words.popleft())
        payload = None
        if len(audio) or words:
            payload = AudioPayload(audio, self.module.sample_rate, tuple(words))
        if final:
            del self.requests[request.request_id]
        return GenerationOutput(request.request_id, payload, final)

    def abort(self, request_id: str) -> None:
        """Forgets a request; idempotent."""
        self.requests.pop(request_id, None)

    def close(self) -> None:
        """Forgets everything."""
        self.requests.clear()
