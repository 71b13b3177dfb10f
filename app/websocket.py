"""How WebSockets are let in and refused."""

from __future__ import annotations

from fastapi import WebSocket

from app.auth import SUBPROTOCOL, offered_subprotocols

_POLICY = 1008
_TRY_AGAIN_LATER = 1013

_MOST_REASON_BYTES = 123
"""What a frame that closes a WebSocket holds beside its code."""


async def accept(websocket: WebSocket) -> None:
    """Lets a client in, with our subprotocol if it offers that."""
    ours = SUBPROTOCOL if SUBPROTOCOL in offered_subprotocols(websocket) else None
    await websocket.accept(ours)


async def close_refused(websocket: WebSocket, message: str, *, later: bool) -> None:
    """Closes a WebSocket that was accepted only to be told why it is refused.

    Args:
        websocket: The WebSocket, which got its `error` event.
        message: Why, for people.
        later: Whether another attempt makes sense.
    """
    reason = message.encode()[:_MOST_REASON_BYTES].decode(errors="ignore")
    await websocket.close(_TRY_AGAIN_LATER if later else _POLICY, reason)
