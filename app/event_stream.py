"""Responses of server-sent events, and of one piece, that end with a client that is too slow."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.pace import ClientPace, SlowClientError, break_off, send_whole

logger = logging.getLogger(__name__)

UNBUFFERED = {
    "Cache-Control": "no-cache",
    # nginx would otherwise collect the whole response before it passes anything on.
    "X-Accel-Buffering": "no",
}
"""Headers of responses that nobody on the way shall collect."""


def server_sent_event(data: dict[str, Any], *, name: str | None = None) -> str:
    """One event on one `data:` line, with a name only where clients look for one."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n"


class Event(NamedTuple):
    """One event as it is sent.

    Attributes:
        text: All of it, the empty line at its end included.
        seconds: Duration of the sound in it.
    """

    text: str
    seconds: float = 0.0


class EventStreamResponse(StreamingResponse):
    """Sends events as they come.

    The framework's own response only stops asking for events when the client leaves; what makes
    them would hold on to the engine until it is collected as garbage. It also cancels again and
    again, so that nothing could be waited for while it ends, and it waits for ever for a client
    that does not read.
    """

    def __init__(self, events: AsyncGenerator[Event], pace: ClientPace) -> None:
        """`events` yields what is sent, `pace` ends a client that takes it too slowly."""
        super().__init__((), media_type="text/event-stream", headers=UNBUFFERED)
        self._events = events
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response; its source has ended when this returns."""
        sending = asyncio.ensure_future(self._send_events(send))
        gone = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except SlowClientError:
            logger.info("A client of events fell too far behind real time; cut off.")
            break_off(scope)
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            await self._events.aclose()

    async def _send_events(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await self._pace.send(send({**start, "headers": self.raw_headers}))
        async for event in self._events:
            body = {"type": "http.response.body", "body": event.text.encode(), "more_body": True}
            await self._pace.send(send(body), event.seconds)
        await self._pace.send(send({"type": "http.response.body", "body": b""}))


class PacedJSONResponse(JSONResponse):
    """JSON in one piece, which may hold much sound."""

    def __init__(self, content: Any, pace: ClientPace, seconds: float) -> None:
        """`seconds` is the duration of the sound in it."""
        super().__init__(content)
        self._pace = pace
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        try:
            start = {"type": "http.response.start", "status": self.status_code}
            await self._pace.send(send({**start, "headers": self.raw_headers}))
            await send_whole(self._pace, send, bytes(self.body), self._seconds)
        except SlowClientError:
            logger.info("A client fell too far behind real time; cut off.")
            break_off(scope)
