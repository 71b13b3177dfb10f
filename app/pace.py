"""The policy for clients that read too slowly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable


class SlowClientError(Exception):
    """The client fell too far behind real time."""


class ClientPace:
    """Ends a client that reads slower than real time by more than a limit.

    Only the time that sends were blocked counts against a client, and each second of audio that it
    took counts for it. So a player that takes much at once and then nothing for a while is fine,
    a slow server is not the client's fault, and a client that stops reading, or reads at half
    speed for long, is ended.
    """

    def __init__(self, limit: float) -> None:
        """`limit` is how many seconds a client may fall behind."""
        self._limit = limit
        self._taken = 0.0
        self._blocked = 0.0

    @property
    def allowance(self) -> float:
        """How many seconds the next send may be blocked."""
        return self._limit + self._taken - self._blocked

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
            raise SlowClientError from None
        self._blocked += time.monotonic() - began
        self._taken += seconds
