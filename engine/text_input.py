"""The text of a request, written by the event loop as it comes and read by the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.chunk import TextPayload

MAXIMUM_PENDING_CHARACTERS = 1_000_000
"""Text that was written but not yet read by the pipeline; `TextInput.write` waits above it."""


class TextInput:
    """The text of one request, written whole or as it comes.

    The writer is one task on the event loop; the reader is the engine. `write` waits while the
    engine has too much unread text, so that a fast writer cannot fill memory.
    """

    def __init__(self) -> None:
        """Makes an open, empty input."""
        self._pending: list[TextPayload] = []
        self._pending_characters = 0
        self._closed = False
        self._abandoned = False
        self._flushed = True
        self._room = asyncio.Event()
        self._room.set()
        self._on_change: Callable[[], None] | None = None

    @classmethod
    def whole(cls, text: str) -> TextInput:
        """An input that is complete from the start."""
        result = cls()
        result._pending.append(TextPayload(text))
        result._pending_characters = len(text)
        result._closed = True
        return result

    @property
    def closed(self) -> bool:
        """Whether no more text will come."""
        return self._closed

    async def write(self, text: str) -> None:
        """Adds text; waits while more than MAXIMUM_PENDING_CHARACTERS are unread.

        What is written for a request that has ended is dropped.

        Raises:
            ValueError: The input is closed already.
        """
        await self._room.wait()
        self._append(TextPayload(text))

    def flush(self) -> None:
        """Lets everything written so far be spoken to its end without waiting for more.

        Raises:
            ValueError: The input is closed already.
        """
        self._append(TextPayload("", flush=True))

    def close(self) -> None:
        """Ends the text. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._changed()

    def _append(self, payload: TextPayload) -> None:
        if self._closed:
            raise ValueError("The text input is closed; no more text can be written to it.")
        if self._abandoned or not (payload.text or self._can_flush(payload)):
            return
        self._flushed = payload.flush
        self._pending.append(payload)
        self._pending_characters += len(payload.text)
        if self._pending_characters > MAXIMUM_PENDING_CHARACTERS:
            self._room.clear()
        self._changed()

    def _can_flush(self, payload: TextPayload) -> bool:
        """Whether a flush would let anything be spoken that the one before it did not."""
        return payload.flush and not self._flushed

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def take(self) -> tuple[list[TextPayload], bool]:
        """Takes all text that was not taken yet; for the engine, on the event loop.

        Returns:
            The pieces in order and whether the text ends with them.
        """
        pieces, self._pending = self._pending, []
        return pieces, self._closed

    def consumed(self, characters: int) -> None:
        """Makes room for a waiting writer; for the engine, on the event loop."""
        self._pending_characters -= characters
        if self._pending_characters <= MAXIMUM_PENDING_CHARACTERS:
            self._room.set()

    def abandon(self) -> None:
        """Says that nobody will read on: a waiting writer goes on, its text is dropped."""
        self._abandoned = True
        self._pending.clear()
        self._room.set()

    def listen(self, on_change: Callable[[], None]) -> None:
        """Names the engine's wake-up, called on the event loop whenever text was added."""
        self._on_change = on_change
