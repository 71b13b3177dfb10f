"""The policy for clients that read too slowly: the same on every endpoint that streams.

A client may fall `slow_client_seconds` behind real time. Then its requests are ended in the engine
with `slow_client`, and its connection is broken off, since nothing that is sent would arrive.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from starlette.types import Scope, Send

from app.connection import ConnectionCutError, connection_of

_SLICE_BYTES = 64 << 10
"""How much of a whole body is sent at once."""


class SlowClientError(Exception):
    """The client fell too far behind real time; its requests have been ended."""


class ClientPace:
    """Ends a client that reads slower than real time by more than a limit.

    A player is simulated that plays what the client took. Only the time counts in which sends were
    blocked and that player had nothing left to play. So a client that takes much at once and then
    nothing for a while is fine, a slow server is not the client's fault, and a client that stops
    reading, or reads at half speed for long, is ended. Audio that it takes faster than it is
    played makes good for what it was behind.

    Attributes:
        blocked: Seconds that sends were blocked, in all.
    """

    def __init__(self, limit: float, give_up: Callable[[], Awaitable[None]] | None = None) -> None:
        """Begins with a client that took nothing yet.

        Args:
            limit: How many seconds the client may fall behind.
            give_up: Ends what is being made for the client; awaited once, when it is too slow.
        """
        self._limit = limit
        self._give_up = give_up
        self._behind = 0.0
        self._played_until = -math.inf
        self.blocked = 0.0

    @property
    def allowance(self) -> float:
        """How many seconds the next send may be blocked."""
        unplayed = max(0.0, self._played_until - time.monotonic())
        return self._limit - self._behind + unplayed

    async def send(self, sending: Awaitable[None], seconds: float = 0.0) -> None:
        """Waits for a send.

        Args:
            sending: The send.
            seconds: Duration of the audio in it.

        Raises:
            SlowClientError: It was blocked for longer than the client had left.
        """
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self.allowance)):
                await sending
        except TimeoutError:
            self._note(began, 0.0)
            if self._give_up is not None:
                await self._give_up()
            raise SlowClientError from None
        self._note(began, seconds)

    def _note(self, began: float, seconds: float) -> None:
        now = time.monotonic()
        self.blocked += now - began
        self._behind += max(0.0, now - max(began, self._played_until))
        self._behind -= min(self._behind, max(0.0, seconds - (now - began)))
        self._played_until = max(now, self._played_until) + seconds


def break_off(scope: Scope) -> None:
    """Drops the connection of a client that is too slow, with all that waits for it.

    Raises:
        ConnectionCutError: The server offers no gentler way.
    """
    connection = connection_of(scope)
    if connection is None:
        raise ConnectionCutError("The response ended before its time.")
    connection.abort()


async def send_whole(pace: ClientPace, send: Send, body: bytes, seconds: float) -> None:
    """Sends a body in slices, so that a client that does not read is noticed here too.

    Args:
        pace: The client's.
        send: Of the response, whose start was sent.
        body: The bytes.
        seconds: Duration of the audio in them.

    Raises:
        SlowClientError: The client was too slow.
    """
    share = seconds * _SLICE_BYTES / max(1, len(body))
    for start in range(0, max(1, len(body)), _SLICE_BYTES):
        data = body[start : start + _SLICE_BYTES]
        more = start + _SLICE_BYTES < len(body)
        message = {"type": "http.response.body", "body": data, "more_body": more}
        await pace.send(send(message), share)
