"""AsyncOmniEngine: the composition root and the one door that the application uses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

from prometheus_client import CollectorRegistry

from engine.abort import AbortReason
from engine.chunk import Chunk
from engine.connector import InProcessConnector
from engine.deploy_config import DeployConfig, load_deploy_config
from engine.edge_check import check_largest_chunks
from engine.encoding_ahead import EncodingAhead, EncodingJob
from engine.environment import require_supported_vllm
from engine.gauges import add_gauges
from engine.host import Host
from engine.metrics import EngineMetrics
from engine.orchestrator import Orchestrator
from engine.pipeline_config import Models, PipelineConfig, load_pipeline
from engine.processes import end_process_group
from engine.request import (
    AudioContent,
    EngineHealth,
    OmniRequest,
    PipelineDescription,
    StageStatus,
    TextReport,
)
from engine.request_runs import RequestRuns
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
        self._runs = RequestRuns(
            pipeline, models, host, self._orchestrator, self._turns, self._metrics
        )
        hears = None if pipeline.hearing is None else pipeline.hearing.stage
        self._ahead = EncodingAhead(
            next((runtime for runtime in self._runtimes if runtime.name == hears), None),
            self._metrics.encoded_ahead.inc,
        )
        self._closed = False
        self.description: PipelineDescription = pipeline.describe(models)
        add_gauges(
            self._metrics,
            self._turns,
            self._connector,
            self._runtimes,
            self._orchestrator.live,
            self._ahead,
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
        config.check_deployment(deployment)
        models = await asyncio.to_thread(config.resolve, model, cache_folder)
        host = Host(f"antiphon-{pipeline}")
        engine = cls(config, deployment, models, host)
        host.start()
        try:
            for runtime in engine._runtimes:
                progress(f"Loading stage {runtime.name} of {pipeline}")
                await asyncio.wrap_future(host.call(runtime.start))
            check_largest_chunks(config, engine._runtimes)
            adopt = partial(host.adopt, engine._orchestrator, engine._ahead)
            host.call(adopt).result(CLOSE_SECONDS)
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
        return self._runs.run(request, self._turns.enter)

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
        return self._runs.run(request, self._turns.replace, replacing=True)

    async def hear(self, sound: AudioContent) -> None:
        """Encodes the beginning of a sound of which more is to come, so that its answer is sooner.

        What is certain of it already is encoded between the stages' steps, as far as that delays
        nobody; a later request with the whole sound finds it in the encoder's bounded cache.
        Returns when that is done. Whoever stops waiting wants no more of it.

        Nothing happens where the pipeline does not hear.

        Args:
            sound: Everything so far, from the sound's beginning on.

        Raises:
            ValueError: It cannot be heard: its sample rate is wrong, or it is too long.
        """
        hearing = self._pipeline.hearing
        if hearing is None or self._closed:
            return
        items = await asyncio.to_thread(hearing.beginning, self._models, sound)
        job = EncodingJob(deque(items))
        self._host.post(partial(self._ahead.add, job))
        try:
            await asyncio.wrap_future(job.done)
        finally:
            self._host.post(partial(self._ahead.withdraw, job))

    async def abort(self, request_id: str, reason: AbortReason = AbortReason.ASKED) -> None:
        """Ends a request: when this returns, it is in no queue, batch or KV block; idempotent.

        Args:
            request_id: Which.
            reason: Why; its reader is told the code that belongs to it.
        """
        self._turns.abort(request_id, reason)
        await asyncio.wrap_future(self._host.call(self._runs.canceller(request_id, reason)))

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
