"""Warming up: every stage really works once before the engine calls itself ready."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from engine.chunk import AudioPayload, Chunk
from engine.request import Chat, ChatMessage, OmniRequest
from engine.text_input import TextInput

ENOUGH_SECONDS = 6.0
"""Sound after which a request has shown what it should; a model might speak on without an end."""

Generate = Callable[[OmniRequest], AsyncGenerator[Chunk[Any]]]


def warm_up_requests(routes: tuple[str, ...], text: str) -> list[OmniRequest]:
    """One request for each kind of input that the routes begin with."""
    requests = []
    if "speech" in routes:
        requests.append(OmniRequest("warm-up-speech", TextInput.whole(text)))
    if "chat" in routes:
        chat = Chat((ChatMessage("user", text),), max_tokens=16)
        requests.append(OmniRequest("warm-up-chat", TextInput(), route="chat", chat=chat))
    return requests


async def warm_up(generate: Generate, routes: tuple[str, ...], text: str) -> None:
    """Runs the warm-up requests, one after another.

    Raises:
        RuntimeError: One failed or made no sound.
    """
    for request in warm_up_requests(routes, text):
        seconds = 0.0
        async with contextlib.aclosing(generate(request)) as chunks:
            async for chunk in chunks:
                if chunk.error is not None:
                    raise RuntimeError(f"Warming up failed: {chunk.error.message}")
                if isinstance(chunk.payload, AudioPayload):
                    seconds += chunk.payload.seconds
                if seconds > ENOUGH_SECONDS:
                    break
        if seconds == 0.0:
            raise RuntimeError(f"Warming up ({request.route}) made no sound.")
