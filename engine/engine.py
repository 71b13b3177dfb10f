"""AsyncOmniEngine: the composition root and the one door that the application uses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

from prometheus_client import CollectorRegistry

from engine.chunk import Chunk
from engine.client_stream import ClientStream
from engine.connector import InProcessConnector
from engine.deploy_config import DeployConfig, load_deploy_config
from engine.environment import require_supported_vllm
from engine.errors import (
    ErrorCode,
    InvalidRequestError,
    StageError,
)
from engine.host import Host
from engine.live_request import LiveRequest, Submission
from engine.metrics import EngineMetrics
from engine.orchestrator import Orchestrator
from engine.pipeline_config import CLIENT, Models, PipelineConfig, load_pipeline
from engine.processes import end_process_group
from engine.request import (
    EngineHealth,
    OmniRequest,
    PipelineDescription,
    StageStatus,
    TextInput,
    TextReport,
)
from engine.stage import ReplicaSlot, StageRuntime
from engine.turns import Turns
from engine.warm_up import warm_up

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0


class AsyncOmniEngine:
    """Speaks: takes requests, gives chunks. Make one with `start`.

    All methods belong to the event loop on which it was started.
    """

    def __init__(
        self, pipeline: PipelineConfig, deploy: DeployConfig, models: Models, host: Host
    ) -> None:
        """Composes the parts; `start` makes them live."""
        self._pipeline = pipeline
        self._deploy = deploy
        self._models = models
        self._host = host
        self._compiler: Popen[bytes] | None = None
        self._loop = asyncio.get_running_loop()
        self._connector = InProcessConnector()
        self._metrics = EngineMetrics()
        self._runtimes = [
            StageRuntime(
                stage.name,
                partial(stage.build, models[stage.name], deploy.stage(stage.name)),
                [ReplicaSlot(index) for index in range(deploy.stage(stage.name).replicas)],
            )
            for stage in pipeline.stages
        ]
        self._orchestrator = Orchestrator(
            pipeline, models, self._runtimes, self._connector, self._metrics, time.monotonic
        )
        self._turns = Turns(deploy.admission)
        self._closed = False
        self.description: PipelineDescription = pipeline.describe(models)
        self._add_gauges()

    @classmethod
    async def start(
        cls,
        *,
        pipeline: str,
        model: str | None = None,
        deploy: Path | None = None,
        cache_folder: Path,
        compile_ahead: bool = True,
        progress: Callable[[str], None] = logger.info,
    ) -> AsyncOmniEngine:
        """Loads a pipeline and warms it up by really speaking.

        Args:
            pipeline: The name of an installed pipeline.
            model: A folder or a name of the catalogue; None means the pipeline's default.
            deploy: A deployment file; None means the pipeline's default.
            cache_folder: Where prepared forms of models and compiled code are kept.
            compile_ahead: Whether stages that are not compiled yet may be compiled for the next
                start, by a process of low priority.
            progress: Told in plain words what is being done.

        Raises:
            ConfigurationError: A name or a configuration value is wrong.
        """
        require_supported_vllm()
        config = load_pipeline(pipeline)
        names = [stage.name for stage in config.stages]
        deployment = load_deploy_config(deploy or config.deploy, names)
        models = await asyncio.to_thread(config.resolve, model, cache_folder)
        host = Host(f"antiphon-{pipeline}")
        engine = cls(config, deployment, models, host)
        host.start()
        try:
            for runtime in engine._runtimes:
                progress(f"Loading stage {runtime.name} of {pipeline}")
                await asyncio.wrap_future(host.call(runtime.start))
            host.call(partial(host.adopt, engine._orchestrator)).result(CLOSE_SECONDS)
            progress("Warming up: speaking a first sentence")
            await warm_up(engine.generate, config.routes, config.warm_up_text)
            if compile_ahead:
                # Imports torch, which starting the stages has done by now.
                from engine.compiled import compile_ahead_of

                engine._compiler = await asyncio.to_thread(
                    compile_ahead_of, config, models, deployment, progress
                )
        except BaseException:
            await engine.close()
            raise
        return engine

    @property
    def registry(self) -> CollectorRegistry:
        """The engine's Prometheus metrics."""
        return self._metrics.registry

    def inspect(self, text: str) -> TextReport:
        """A quick look at a text: can it be spoken, and what will be left out?"""
        return self._pipeline.inspect(text)

    def health(self) -> EngineHealth:
        """Whether requests can be served, and each stage's state."""
        stages = {runtime.name: runtime.status for runtime in self._runtimes}
        ready = (
            not self._closed
            and self._host.alive
            and all(status is StageStatus.READY for status in stages.values())
        )
        return EngineHealth(ready, stages, self._turns.running, self._turns.waiting)

    async def generate(self, request: OmniRequest) -> AsyncGenerator[Chunk[Any]]:
        """Runs a request and gives its chunks as they are made.

        Closing the generator aborts the request. After the first chunk every failure is a final
        chunk with an error; exactly one chunk is final.

        Raises:
            InvalidRequestError: A parameter is wrong, or the identifier is in use.
            EngineOverloadedError: The waiting line is full.
            EngineClosedError: The engine is closing.
        """
        started = time.monotonic()
        self._check(request)
        ticket = self._turns.enter(request)
        live: LiveRequest | None = None
        stream = ClientStream(self._loop, partial(self._host.post, _nothing))
        try:
            await self._turns.wait(request, ticket)
            self._metrics.admission_wait.observe(time.monotonic() - started)
            if ticket.aborted:
                yield _aborted_in_line(request)
                return
            ticket.submitted = True
            live = await self._submit(request, stream, started)
            async for chunk in stream.chunks():
                yield chunk
        finally:
            # Posted before the identifier is free, so that it cannot meet a later request.
            ending = None
            if live is not None and live.unfinished:
                ending = self._host.call(partial(self._cancel, request.request_id))
            stream.release()
            request.text.abandon()
            self._turns.leave(request.request_id)
            if ending is not None:
                await asyncio.shield(asyncio.wrap_future(ending))

    def _check(self, request: OmniRequest) -> None:
        self._pipeline.check(request.parameters)
        routes = self._pipeline.routes
        if request.route not in routes:
            raise InvalidRequestError(
                "route", f"There is no route {request.route!r}; this pipeline has {routes}."
            )

    async def _submit(
        self, request: OmniRequest, stream: ClientStream, started: float
    ) -> LiveRequest:
        submission = Submission(
            request_id=request.request_id,
            session=request.session,
            route=request.route,
            parameters=request.parameters,
            started=started,
            deadline_at=started + self._turns.deadline(request),
            on_chunk=stream.notify,
            on_text_consumed=partial(self._text_consumed, request.text),
        )
        taken_in: list[LiveRequest] = []
        submit = partial(self._orchestrator.submit, submission)
        submitting = self._host.call(lambda: taken_in.append(submit()))
        try:
            await asyncio.wrap_future(submitting)
        except asyncio.CancelledError:
            # The engine may take it in yet; what was posted later runs later.
            self._host.post(partial(self._discard, taken_in))
            raise
        (live,) = taken_in
        stream.attach(live.client)
        if request.chat is not None:
            self._post_input(request.request_id, [request.chat], closed=True)
        else:
            forward = partial(self._forward_text, request.request_id, request.text)
            request.text.listen(forward)
            forward()
        return live

    def _text_consumed(self, text: TextInput, characters: int) -> None:
        self._loop.call_soon_threadsafe(text.consumed, characters)

    def _forward_text(self, request_id: str, text: TextInput) -> None:
        pieces, closed = text.take()
        if pieces or closed:
            self._post_input(request_id, pieces, closed)

    def _post_input(self, request_id: str, payloads: Sequence[Any], closed: bool) -> None:
        self._host.post(partial(self._orchestrator.add_input, request_id, payloads, closed))

    def _discard(self, taken_in: list[LiveRequest]) -> None:
        """Ends what was submitted for a caller that is gone."""
        for live in taken_in:
            self._cancel(live.request_id)
            for edge in live.client:
                edge.release()

    def _cancel(self, request_id: str) -> None:
        self._orchestrator.cancel(request_id, ErrorCode.CANCELLED, "The request was cancelled.")

    async def abort(self, request_id: str) -> None:
        """Ends a request: when this returns, it is in no queue, batch or KV block; idempotent."""
        self._turns.abort(request_id)
        await asyncio.wrap_future(self._host.call(partial(self._cancel, request_id)))

    async def end_session(self, session: str) -> None:
        """Ends a duplex session: its live request is cancelled, its epoch forgotten."""
        await asyncio.wrap_future(self._host.call(partial(self._orchestrator.end_session, session)))

    async def close(self) -> None:
        """Ends every request and frees the stages; idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._compiler is not None:
            await asyncio.to_thread(end_process_group, self._compiler)
        self._turns.close()
        ending = partial(
            self._orchestrator.close, ErrorCode.SHUTTING_DOWN, "The engine is shutting down."
        )
        self._host.post(ending)
        for runtime in self._runtimes:
            with contextlib.suppress(TimeoutError):
                closing = asyncio.wrap_future(self._host.call(runtime.close))
                await asyncio.wait_for(closing, CLOSE_SECONDS)
        await asyncio.to_thread(self._host.close, CLOSE_SECONDS)

    def _add_gauges(self) -> None:
        gauge = self._metrics.gauge
        live: dict[str, Any] = self._orchestrator.live
        gauge("antiphon_requests_running", "Requests at work.", lambda: self._turns.running)
        gauge("antiphon_requests_waiting", "Requests in line.", lambda: self._turns.waiting)
        gauge("antiphon_requests_live", "Requests inside the stages.", lambda: len(live))
        gauge("antiphon_edges_open", "Open channels.", lambda: len(self._connector))
        gauge(
            "antiphon_credits_in_use",
            "What is in flight on all edges, in the edges' units.",
            lambda: sum(request.credits_in_use for request in list(live.values())),
        )


def _aborted_in_line(request: OmniRequest) -> Chunk[Any]:
    error = StageError(ErrorCode.CANCELLED, "The request was cancelled.")
    return Chunk(request.request_id, 0, CLIENT, 0, None, final=True, error=error)


def _nothing() -> None:
    """Posted to the engine thread only to wake it."""
