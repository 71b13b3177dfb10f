"""Measures how late the event loop gets round to its timers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

INTERVAL_SECONDS = 0.5
"""Seldom enough to cost nothing on an idle server, often enough to catch a blocked loop."""


async def measure_loop_lag(observe: Callable[[float], None]) -> None:
    """Reports the lag in seconds, for ever; cancel the task to stop it."""
    loop = asyncio.get_running_loop()
    while True:
        planned = loop.time() + INTERVAL_SECONDS
        await asyncio.sleep(INTERVAL_SECONDS)
        observe(max(0.0, loop.time() - planned))
