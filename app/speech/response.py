"""The response that speaks: it waits for first audio, streams, and ends in exactly one way."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.connection import ConnectionCutError, connection_of
from app.disconnect import until_disconnected
from app.errors import ApiError
from app.event_stream import UNBUFFERED
from app.metrics import AppMetrics, Outcome, Transport
from app.pace import ClientPace, SlowClientError, break_off, send_whole
from app.speech.framing import Framing
from app.speech.stream import SpeechFailedError, SpokenStream
from app.timeline import RequestRecord, Timelines

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a response needs besides the stream itself.

    Attributes:
        record: The request's name, when it came, and where its time goes.
        transport: How the audio travels, for the metrics.
        headers: Further response headers.
        slow_client_seconds: How far the client may fall behind real time.
        maximum_whole_bytes: Largest body that is sent in one piece.
        metrics: What is counted.
        timelines: Where the record is kept.
    """

    record: RequestRecord
    transport: Transport
    headers: dict[str, str]
    slow_client_seconds: float
    maximum_whole_bytes: int
    metrics: AppMetrics
    timelines: Timelines


class SpeechResponse(Response):
    """Speaks a request into a response body.

    The headers leave when the first audio exists, so that whatever fails before is a proper HTTP
    error. The request is aborted in the engine as soon as the client is gone.
    """

    def __init__(self, stream: SpokenStream, framing: Framing, delivery: Delivery) -> None:
        """Nothing happens before the response is sent."""
        self.status_code = HTTPStatus.OK
        self.background = None
        self._stream = stream
        self._framing = framing
        self._delivery = delivery
        self._started = False
        self._outcome: Outcome | None = None
        self._pace = ClientPace(delivery.slow_client_seconds, stream.give_up)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        transport = self._delivery.transport
        metrics = self._delivery.metrics
        with metrics.active.labels(transport).track_inprogress():
            gone = asyncio.create_task(until_disconnected(receive), name="watch client")
            speaking = asyncio.create_task(self._speak(scope, send, gone), name="speak")
            try:
                await asyncio.wait({speaking, gone}, return_when=asyncio.FIRST_COMPLETED)
                if self._outcome is None:
                    # Either the client is gone, or the task raised what nobody foresaw.
                    self._outcome = Outcome.FAILED if speaking.done() else Outcome.DISCONNECTED
                    speaking.cancel()
                await asyncio.wait({speaking})
                if not speaking.cancelled():
                    speaking.result()
            finally:
                await _join(speaking, gone)
                # Only a server that cancels this very task leaves the outcome open.
                outcome = self._outcome or Outcome.SHUTDOWN
                metrics.requests.labels(transport, outcome).inc()
                metrics.audio_seconds.labels(transport).inc(self._stream.seconds)
                self._delivery.record.blocked = self._pace.blocked
                self._delivery.timelines.close(self._delivery.record, outcome)
                logger.debug("%s ended: %s", self._delivery.record.request_id, outcome)

    async def _speak(self, scope: Scope, send: Send, gone: asyncio.Task[None]) -> None:
        """Sends everything. Decides the outcome before it waits for a connection to end."""
        try:
            await self._deliver(scope, send, gone)
        except SlowClientError:
            self._outcome = Outcome.SLOW_CLIENT
            logger.info(
                "%s: the client fell more than %g s behind real time; cut off.",
                self._delivery.record.request_id,
                self._delivery.slow_client_seconds,
            )
            break_off(scope)
            await asyncio.wait({gone})

    async def _deliver(self, scope: Scope, send: Send, gone: asyncio.Task[None]) -> None:
        try:
            if self._delivery.transport is Transport.WHOLE:
                await self._send_whole(send)
            else:
                await self._send_streamed(send)
            self._outcome = Outcome.COMPLETED
        except SpeechFailedError as failure:
            self._outcome = failure.outcome
            await self._tell_failure(failure.error, scope, send, gone)

    async def _send_streamed(self, send: Send) -> None:
        async with aclosing(self._stream.pieces()) as pieces:
            async for piece in pieces:
                await self._send_part(send, self._framing.piece(piece), piece.seconds)
        await self._send_part(send, self._framing.end(self._stream.seconds))
        await self._pace.send(send({"type": "http.response.body", "more_body": False}))

    async def _send_part(self, send: Send, data: bytes, seconds: float = 0.0) -> None:
        if not data:
            return
        if not self._started:
            await self._start(send, {"content-type": self._framing.media_type})
        body = {"type": "http.response.body", "body": data, "more_body": True}
        if seconds > 0.0:
            self._delivery.record.sent()
        await self._pace.send(send(body), seconds)

    async def _send_whole(self, send: Send) -> None:
        body = bytearray()
        async with aclosing(self._stream.pieces()) as pieces:
            async for piece in pieces:
                body += piece.data
                if len(body) + self._stream.kept > self._delivery.maximum_whole_bytes:
                    raise _too_large(self._delivery.maximum_whole_bytes)
        headers = {"content-type": self._framing.media_type, "content-length": str(len(body))}
        await self._start(send, headers)
        self._delivery.record.sent()
        await send_whole(self._pace, send, bytes(body), self._stream.seconds)

    async def _start(self, send: Send, headers: dict[str, str]) -> None:
        waited = time.monotonic() - self._delivery.record.received
        self._delivery.metrics.first_audio.labels(self._delivery.transport).observe(waited)
        message: Message = {"type": "http.response.start", "status": HTTPStatus.OK, "headers": []}
        all_headers = MutableHeaders(scope=message)
        all_headers.update({**UNBUFFERED, **headers, **self._delivery.headers})
        all_headers["Server-Timing"] = f"first-audio;dur={1000 * waited:.1f}"
        self._started = True
        await self._pace.send(send(message))

    async def _tell_failure(
        self, error: ApiError, scope: Scope, send: Send, gone: asyncio.Task[None]
    ) -> None:
        """An HTTP error while there is time, an event if the body has one, else a broken body."""
        if not self._started:
            await error.response()(scope, _never_receive, send)
            return
        words = self._framing.failure(error)
        if words is None:
            await self._cut_off(scope, gone)
            return
        body = {"type": "http.response.body", "body": words, "more_body": False}
        await self._pace.send(send(body))

    async def _cut_off(self, scope: Scope, gone: asyncio.Task[None]) -> None:
        """Ends the connection behind what was sent: the client sees a body without its end."""
        connection = connection_of(scope)
        if connection is None:
            raise ConnectionCutError("The response ended before its time.")
        connection.close()
        await asyncio.wait({gone}, timeout=self._delivery.slow_client_seconds)
        connection.abort()
        await asyncio.wait({gone})


def _too_large(limit: int) -> SpeechFailedError:
    return SpeechFailedError(
        ApiError(
            HTTPStatus.BAD_REQUEST,
            f"The audio is larger than the {limit} bytes that are sent in one piece; leave out "
            "'stream' to get it as it is made.",
            param="stream",
            code="response_too_large",
        ),
        Outcome.REFUSED,
    )


async def _never_receive() -> Message:
    raise RuntimeError("An error response does not read its request.")


async def _join(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
