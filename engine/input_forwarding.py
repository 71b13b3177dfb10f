"""Carries a request's input from the event loop to the engine thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from engine.host import Host
from engine.orchestrator import Orchestrator
from engine.request import OmniRequest
from engine.text_input import TextInput


class InputForwarder:
    """Posts what is written to the engine thread, and says what was read of it."""

    def __init__(
        self, host: Host, orchestrator: Orchestrator, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Belongs to the event loop `loop`."""
        self._host = host
        self._orchestrator = orchestrator
        self._loop = loop

    def begin(self, request: OmniRequest) -> None:
        """Posts a request's input, now and whenever more of its text is written."""
        if request.chat is not None:
            self._post(request.request_id, [request.chat], closed=True)
            return
        forward = partial(self._forward, request.request_id, request.text)
        request.text.listen(forward)
        forward()

    def consumed(self, text: TextInput, characters: int) -> None:
        """Characters of a text were read; called on the engine thread."""
        self._loop.call_soon_threadsafe(text.consumed, characters)

    def _forward(self, request_id: str, text: TextInput) -> None:
        pieces, closed = text.take()
        if pieces or closed:
            self._post(request_id, pieces, closed)

    def _post(self, request_id: str, payloads: Sequence[Any], closed: bool) -> None:
        self._host.post(partial(self._orchestrator.add_input, request_id, payloads, closed))
