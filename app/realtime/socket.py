"""The socket that serves a session: one task reads, one writes, and both end with it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from enum import Enum, auto

from starlette.websockets import WebSocket, WebSocketDisconnect

from app.audio.wire_formats import TICKS_PER_SECOND
from app.pace import ClientPace, SlowClientError, break_off
from app.realtime.client_events import parse_client_event
from app.realtime.failure import EventError
from app.realtime.inbox import ClientErred, ClientSaid, SocketLost, SoundSent
from app.realtime.outbox import Closing, Outbox
from app.realtime.pictures import decode_pictures, picture_urls
from app.realtime.session import Session
from app.realtime.sounds import INLINE_CHARACTERS, sounds_of

logger = logging.getLogger(__name__)

_NORMAL_CLOSURE = 1000
"""How a client says that it will not come back."""


class SocketEnd(Enum):
    """Why a socket serves no longer."""

    CLOSED_HERE = auto()
    DISCONNECTED = auto()
    SLOW_CLIENT = auto()


class SessionSocket:
    """Serves a session on one accepted socket."""

    def __init__(self, websocket: WebSocket, session: Session, outbox: Outbox) -> None:
        """The session must have been told of the outbox."""
        self._websocket = websocket
        self._session = session
        self._outbox = outbox
        self._settings = session.services.settings
        self._left = False
        self._slow = False

    async def run(self) -> None:
        """Serves until the socket is closed by either side; both tasks have ended then."""
        reader = asyncio.create_task(self._read(), name="realtime reader")
        writer = asyncio.create_task(self._write(), name="realtime writer")
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            end = (writer if writer.done() else reader).result()
            if end is SocketEnd.SLOW_CLIENT:
                logger.info("%s: the client reads too slowly; cut off.", self._session.id)
                self._slow = True
                break_off(self._websocket.scope)
        finally:
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
            self._outbox.close(Closing(1000, "the client left", orderly=False))
            self._session.tell(SocketLost(self._outbox, self._left, self._slow))

    async def _read(self) -> SocketEnd:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._left = message.get("code") == _NORMAL_CLOSURE
                return SocketEnd.DISCONNECTED
            try:
                said = await self._parse(message.get("text"))
            except EventError as refusal:
                await self._session.tell_from_client(ClientErred(self._outbox, refusal))
            else:
                await self._session.tell_from_client(said)

    async def _parse(self, text: str | None) -> ClientSaid:
        if text is None:
            message = "Events are JSON in text frames; binary frames mean nothing here."
            raise EventError(message, "invalid_event")
        services = self._session.services
        if len(text) <= INLINE_CHARACTERS:
            said = self._read_event(text)
        else:
            said = await services.codecs.run(lambda: self._read_event(text))
        urls = picture_urls(said.event) if services.engine.description.sees else {}
        if not urls:
            return said
        event_id = said.event.event_id
        pictures = await services.codecs.run(lambda: decode_pictures(urls, event_id))
        return replace(said, pictures=pictures)

    def _read_event(self, text: str) -> ClientSaid:
        event = parse_client_event(text)
        sounds = sounds_of(event, self._settings.realtime_append_bytes)
        return ClientSaid(self._outbox, event, sounds)

    async def _write(self) -> SocketEnd:
        """Sends what waits, until the outbox is closed or nobody takes it."""
        pace = ClientPace(self._settings.slow_client_seconds)
        try:
            while (frame := await self._outbox.take()) is not None:
                sending = self._websocket.send_text(frame.text)
                await pace.send(sending, frame.ticks / TICKS_PER_SECOND)
                if frame.item is not None:
                    self._session.tell(SoundSent(frame.item, frame.ticks))
            closing = self._outbox.closing
            assert closing is not None
            await pace.send(self._websocket.close(closing.code, closing.reason))
        except SlowClientError:
            return SocketEnd.SLOW_CLIENT
        except (WebSocketDisconnect, RuntimeError):
            return SocketEnd.DISCONNECTED
        return SocketEnd.CLOSED_HERE
