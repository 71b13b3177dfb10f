"""Closing a generator such that nothing can cut that short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

Item = TypeVar("Item")


@asynccontextmanager
async def surely_closing(generator: AsyncGenerator[Item]) -> AsyncIterator[AsyncGenerator[Item]]:
    """As `contextlib.aclosing`, but a cancellation during the closing waits for its end.

    The engine acknowledges the end of a request by ending its generator; a task that was cancelled
    just then must not be over before.
    """
    try:
        yield generator
    finally:
        closing = asyncio.ensure_future(generator.aclose())
        interrupted: asyncio.CancelledError | None = None
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError as cancellation:
                interrupted = cancellation
        closing.result()
        if interrupted is not None:
            raise interrupted
