"""One response inside the engine: a task that asks, converts, and tells the session."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.audio.wire_formats import WireEncoder, WireFormat
from app.audio.worker import CodecPool, StreamEncoder
from app.engine_port import SpeechEngine
from app.metrics import Outcome
from app.realtime.closing import surely_closing
from app.realtime.inbox import CallMade, SoundMade, TextMade, Told, WorkDone
from app.realtime.outbox import Outbox
from app.timeline import Endpoint, RequestRecord, Timelines, TraceContext
from engine import (
    AudioPayload,
    Chunk,
    EngineError,
    OmniRequest,
    StageError,
    TextPayload,
    ToolCallPayload,
    UsagePayload,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What the task needs; nothing of it changes while it runs.

    Attributes:
        request: What the engine is asked.
        engine: The engine.
        codecs: The threads that convert sound.
        timelines: Where its times are kept.
        trace: The trace that it belongs to.
        output_format: What the client hears.
        outbox: Gives the outbox of the socket that serves the session now.
        tell: Takes what was made; called on the event loop.
    """

    request: OmniRequest
    engine: SpeechEngine
    codecs: CodecPool
    timelines: Timelines
    trace: TraceContext
    output_format: WireFormat
    outbox: Callable[[], Outbox]
    tell: Callable[[Told], None]


class ResponseWork:
    """Makes one response. Cancelling the task aborts it in the engine before the task ends."""

    _record: RequestRecord

    def __init__(self, order: WorkOrder) -> None:
        """Nothing happens before `run`."""
        self._order = order
        self._response_id = order.request.request_id
        self._usage: UsagePayload | None = None
        rate = order.engine.description.sample_rate
        encoder = WireEncoder(rate, order.output_format)
        plain = order.output_format is WireFormat.PCM and rate == order.output_format.rate
        self._encoder = StreamEncoder(order.codecs, encoder, plain=plain)

    async def run(self) -> None:
        """Asks the engine and tells what it makes, piece by piece, as the client takes it."""
        order = self._order
        # Not before: the record of a task that is cancelled before it begins would never end.
        self._record = order.timelines.open(order.request, Endpoint.REALTIME, trace=order.trace)
        outcome = Outcome.CANCELLED
        try:
            error = await self._make()
            outcome = Outcome.COMPLETED if error is None else Outcome.of_error(error.code)
        except EngineError as failure:
            error = failure.error
            outcome = Outcome.of_error(error.code)
        finally:
            self._encoder.discard()
            order.timelines.close(self._record, outcome)
        order.tell(WorkDone(self._response_id, self._usage, error))

    async def _make(self) -> StageError | None:
        request, engine = self._order.request, self._order.engine
        # A new answer takes the place of the session's older one, if that is still being made.
        generate = engine.generate if request.session is None else engine.replace
        async with surely_closing(generate(request)) as chunks:
            async for chunk in chunks:
                if chunk.error is not None:
                    return chunk.error
                await self._pass_on(chunk)
        with self._record.encoding():
            rest = await self._encoder.finish()
        await self._tell_sound(rest, AudioPayload(_NOTHING, 1))
        return None

    async def _pass_on(self, chunk: Chunk[Any]) -> None:
        payload = chunk.payload
        match payload:
            case TextPayload():
                self._order.tell(TextMade(self._response_id, payload.text))
            case ToolCallPayload():
                self._order.tell(CallMade(self._response_id, payload))
            case UsagePayload():
                self._usage = payload
            case AudioPayload():
                with self._record.encoding():
                    data = await self._encoder.encode(payload.samples)
                await self._tell_sound(data, payload)
            case _:
                pass

    async def _tell_sound(self, data: bytes, payload: AudioPayload) -> None:
        if not data and not payload.words:
            return
        # The engine makes no more than the client takes: it is asked for the next chunk only after
        # there is room for this one.
        outbox = self._order.outbox()
        began = time.monotonic()
        await outbox.room()
        self._record.blocked += time.monotonic() - began
        outbox.reserve(len(data))
        self._record.sent()
        self._order.tell(SoundMade(self._response_id, data, payload.words, outbox))


_NOTHING = np.zeros(0, np.float32)
