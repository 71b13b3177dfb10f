"""A response of server-sent events whose source is closed with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

_HEADERS = {
    "Cache-Control": "no-cache",
    # nginx would otherwise collect the whole response before it passes anything on.
    "X-Accel-Buffering": "no",
}


class EventStreamResponse(StreamingResponse):
    """Sends events as they come.

    The framework's own response only stops asking for events when the client leaves; what makes
    them would hold on to the engine until it is collected as garbage. It also cancels again and
    again, so that nothing could be waited for while it ends.
    """

    def __init__(self, events: AsyncGenerator[str]) -> None:
        """`events` yields whole events."""
        super().__init__(events, media_type="text/event-stream", headers=_HEADERS)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response; its source has ended when this returns."""
        sending = asyncio.ensure_future(self.stream_response(send))
        gone = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            await self._events.aclose()
