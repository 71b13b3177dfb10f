"""AsyncOmniEngine: the composition root and the one door that the application uses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

from prometheus_client import CollectorRegistry

from engine.abort import AbortReason
from engine.chunk import Chunk
from engine.client_stream import ClientStream
from engine.connector import InProcessConnector
from engine.deploy_config import DeployConfig, load_deploy_config
from engine.edge_check import check_largest_chunks
from engine.environment import require_supported_vllm
from engine.errors import EngineError, InvalidRequestError, StageError
from engine.gauges import add_gauges
from engine.host import Host
from engine.input_forwarding import InputForwarder
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
    TextReport,
)
from engine.stage import ReplicaSlot, StageRuntime
from engine.turns import Ticket, Turns
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
        self._input = InputForwarder(host, self._orchestrator, self._loop)
        self._closed = False
        self.description: PipelineDescription = pipeline.describe(models)
        add_gauges(
            self._metrics,
            self._turns,
            self._connector,
            self._runtimes,
            self._orchestrator.live,
        )

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
            check_largest_chunks(config, engine._runtimes)
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

    def generate(self, request: OmniRequest) -> AsyncGenerator[Chunk[Any]]:
        """Runs a request and gives its chunks as they are made.

        Closing the generator aborts the request. After the first chunk every failure is a final
        chunk with an error; exactly one chunk is final. `request.times` says afterwards where the
        time went.

        Raises:
            InvalidRequestError: A parameter is wrong, or the identifier is in use.
            EngineOverloadedError: The waiting line is full.
            EngineClosedError: The engine is closing.
        """
        return self._run(request, self._turns.enter)

    def replace(self, request: OmniRequest) -> AsyncGenerator[Chunk[Any]]:
        """Runs a request in the place of its session's older one, if there is one.

        The older request is fenced, and out of every queue, batch and KV block, before the newer
        one begins; its reader gets one final chunk. The newer one takes over its turn, so a
        session that is interrupted does not go to the end of the line. What the older one left in
        a prefix cache stays there: a conversation's history is not computed again.

        Otherwise this is `generate`.

        Raises:
            InvalidRequestError: The request belongs to no session, a parameter is wrong, or the
                identifier is in use. The older request goes on then.
            EngineOverloadedError: There is no older request, and the waiting line is full.
            EngineClosedError: The engine is closing.
        """
        return self._run(request, self._turns.replace, replacing=True)

    async def _run(
        self,
        request: OmniRequest,
        enter: Callable[[OmniRequest], Ticket],
        *,
        replacing: bool = False,
    ) -> AsyncGenerator[Chunk[Any]]:
        request.times.arrived = time.monotonic()
        self._check(request, replacing)
        ticket = self._enter(request, enter)
        live: LiveRequest | None = None
        stream = ClientStream(self._loop, partial(self._host.post, _nothing))
        try:
            if replacing:
                fence = partial(self._orchestrator.fence, str(request.session))
                await asyncio.wrap_future(self._host.call(fence))
            refusal = await self._wait(request, ticket)
            if refusal is not None:
                yield Chunk(request.request_id, 0, CLIENT, 0, None, final=True, error=refusal)
                return
            ticket.submitted = True
            live = await self._submit(request, stream)
            async for chunk in stream.chunks():
                yield chunk
        finally:
            # Posted before the identifier is free, so that it cannot meet a later request.
            ending = None
            if live is not None and live.unfinished:
                ending = self._host.call(self._canceller(request.request_id))
            stream.release()
            request.text.abandon()
            self._turns.leave(request.request_id)
            if ending is not None:
                await asyncio.shield(asyncio.wrap_future(ending))

    def _enter(self, request: OmniRequest, enter: Callable[[OmniRequest], Ticket]) -> Ticket:
        try:
            return enter(request)
        except EngineError as refusal:
            self._metrics.note_refusal(refusal.error.code)
            raise

    async def _wait(self, request: OmniRequest, ticket: Ticket) -> StageError | None:
        refusal = await self._turns.wait(request, ticket)
        times = request.times
        now = time.monotonic()
        if times.arrived is not None:
            self._metrics.admission_wait.observe(now - times.arrived)
        if refusal is None:
            times.admitted = now
        else:
            times.ended, times.error = now, refusal.code
            self._metrics.note_refusal(refusal.code)
        return refusal

    def _check(self, request: OmniRequest, replacing: bool) -> None:
        if replacing and request.session is None:
            raise InvalidRequestError(
                "session", "session is None; only a request of a session replaces an older one."
            )
        self._pipeline.check_parameters(self._models, request.parameters)
        routes = self._pipeline.routes
        if request.route not in routes:
            raise InvalidRequestError(
                "route", f"There is no route {request.route!r}; this pipeline has {routes}."
            )

    async def _submit(self, request: OmniRequest, stream: ClientStream) -> LiveRequest:
        started = request.times.arrived or time.monotonic()
        submission = Submission(
            request_id=request.request_id,
            session=request.session,
            route=request.route,
            parameters=request.parameters,
            started=started,
            deadline_at=started + self._turns.deadline(request),
            on_chunk=stream.notify,
            on_text_consumed=partial(self._input.consumed, request.text),
            times=request.times,
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
        self._input.begin(request)
        return live

    def _discard(self, taken_in: list[LiveRequest]) -> None:
        """Ends what was submitted for a caller that is gone."""
        for live in taken_in:
            self._canceller(live.request_id)()
            for edge in live.client:
                edge.release()

    def _canceller(
        self, request_id: str, reason: AbortReason = AbortReason.DISCONNECTED
    ) -> Callable[[], None]:
        return partial(self._orchestrator.cancel, request_id, reason, time.monotonic())

    async def abort(self, request_id: str, reason: AbortReason = AbortReason.ASKED) -> None:
        """Ends a request: when this returns, it is in no queue, batch or KV block; idempotent.

        Args:
            request_id: Which.
            reason: Why; its reader is told the code that belongs to it.
        """
        self._turns.abort(request_id, reason)
        await asyncio.wrap_future(self._host.call(self._canceller(request_id, reason)))

    async def end_session(self, session: str) -> None:
        """Ends a duplex session: its live request is cancelled, its epoch forgotten."""
        await asyncio.wrap_future(self._host.call(partial(self._orchestrator.end_session, session)))

    async def close(self, *, free: bool = True) -> None:
        """Ends every request and frees the stages; idempotent.

        Args:
            free: Whether to free them; a process that ends at once need not wait for that.
        """
        if self._closed:
            return
        self._closed = True
        if self._compiler is not None:
            await asyncio.to_thread(end_process_group, self._compiler)
        self._turns.close()
        self._host.post(self._orchestrator.close)
        for runtime in self._runtimes if free else ():
            with contextlib.suppress(TimeoutError):
                closing = asyncio.wrap_future(self._host.call(runtime.close))
                await asyncio.wait_for(closing, CLOSE_SECONDS)
        await asyncio.to_thread(self._host.close, CLOSE_SECONDS)


def _nothing() -> None:
    """Posted to the engine thread only to wake it."""
