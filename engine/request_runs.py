"""Runs requests: from the waiting line through the engine thread to the client, and out again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any

from engine.abort import AbortReason
from engine.chunk import Chunk
from engine.client_stream import ClientStream
from engine.errors import EngineError, InvalidRequestError, StageError
from engine.host import Host
from engine.input_forwarding import InputForwarder
from engine.live_request import LiveRequest, Submission
from engine.metrics import EngineMetrics
from engine.orchestrator import Orchestrator
from engine.pipeline_config import CLIENT, Models, PipelineConfig
from engine.request import OmniRequest
from engine.turns import Ticket, Turns


class RequestRuns:
    """The event loop's side of every request."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        models: Models,
        host: Host,
        orchestrator: Orchestrator,
        turns: Turns,
        metrics: EngineMetrics,
    ) -> None:
        """Runs nothing yet; belongs to the running event loop."""
        self._pipeline = pipeline
        self._models = models
        self._host = host
        self._orchestrator = orchestrator
        self._turns = turns
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._input = InputForwarder(host, orchestrator, self._loop)

    async def run(
        self,
        request: OmniRequest,
        enter: Callable[[OmniRequest], Ticket],
        *,
        replacing: bool = False,
    ) -> AsyncGenerator[Chunk[Any]]:
        """Runs a request; closing the generator aborts it.

        Args:
            request: What is asked.
            enter: Takes it into the waiting line.
            replacing: Whether the session's older request ends before.

        Raises:
            EngineError: See `AsyncOmniEngine.generate` and `replace`.
        """
        request.times.arrived = time.monotonic()
        self._check(request, replacing)
        ticket = self._enter(request, enter)
        live: LiveRequest | None = None
        stream = ClientStream(self._loop, partial(self._host.post, _nothing))
        try:
            if replacing:
                fence = partial(self._orchestrator.fence, str(request.session))
                await asyncio.wrap_future(self._host.call(fence))
            await self._prepare(request)
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
                ending = self._host.call(self.canceller(request.request_id))
            stream.release()
            request.text.abandon()
            self._turns.leave(request.request_id)
            if ending is not None:
                await asyncio.shield(asyncio.wrap_future(ending))

    def canceller(
        self, request_id: str, reason: AbortReason = AbortReason.DISCONNECTED
    ) -> Callable[[], None]:
        """What ends a request, asked for now, when it is called on the engine thread."""
        return partial(self._orchestrator.cancel, request_id, reason, time.monotonic())

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

    def _enter(self, request: OmniRequest, enter: Callable[[OmniRequest], Ticket]) -> Ticket:
        try:
            return enter(request)
        except EngineError as refusal:
            self._metrics.note_refusal(refusal.error.code)
            raise

    async def _prepare(self, request: OmniRequest) -> None:
        """Makes what the Thinker's encoders read of the request's sounds and pictures, on a thread.

        Raises:
            InvalidRequestError: One of them cannot be heard or seen.
        """
        hearing, see = self._pipeline.hearing, self._pipeline.see
        messages = () if request.chat is None else request.chat.messages
        sounds = [sound for message in messages for sound in message.sounds]
        pictures = [picture for message in messages for picture in message.pictures]
        if not (hearing and sounds) and not (see and pictures):
            return

        def prepare() -> None:
            if hearing is not None:
                for sound in sounds:
                    hearing.prepare(self._models, sound)
            if see is not None:
                for picture in pictures:
                    see(self._models, picture)

        try:
            await asyncio.to_thread(prepare)
        except ValueError as fault:
            raise InvalidRequestError("messages", str(fault)) from fault

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
            self.canceller(live.request_id)()
            for edge in live.client:
                edge.release()


def _nothing() -> None:
    """Posted to the engine thread only to wake it."""
