"""Work for a client that may leave."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

Result = TypeVar("Result")


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Does some work, which ends with the client's connection.

    The request's body must have been read already.

    Raises:
        ClientDisconnect: The client left before the work was done.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.create_task(until_disconnected(request.receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def until_disconnected(receive: Receive) -> None:
    """Waits until the client of a request is gone; its body must have been read already."""
    while (await receive())["type"] != "http.disconnect":
        pass
