"""The times that a session waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.realtime.inbox import Timer, TimeUp, Told


class Timers:
    """Tells the actor when a time has come; a timer that is set anew forgets its older time."""

    def __init__(self, tell: Callable[[Told], None]) -> None:
        """`tell` puts something into the actor's inbox."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._handles: dict[Timer, asyncio.TimerHandle] = {}
        self._numbers: dict[Timer, int] = {}

    def number(self, timer: Timer) -> int:
        """How often a timer was set or cancelled; tells a time that came too late."""
        return self._numbers.get(timer, 0)

    def set(self, timer: Timer, when: float) -> None:
        """Sets a timer to a time of the event loop's clock."""
        self.cancel(timer)
        told = TimeUp(timer, self.number(timer))
        self._handles[timer] = self._loop.call_at(when, self._tell, told)

    def expire_after(self, seconds: float) -> None:
        """Ends the session after so long."""
        self.set(Timer.EXPIRED, self._loop.time() + seconds)

    def cancel(self, timer: Timer) -> None:
        """Forgets a timer's time."""
        self._numbers[timer] = self.number(timer) + 1
        handle = self._handles.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def close(self) -> None:
        """Forgets all times."""
        for timer in Timer:
            self.cancel(timer)
