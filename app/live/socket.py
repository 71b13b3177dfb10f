"""One Live socket: a reader and a writer around a session, the sound at the pace of hearing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from app.audio.wire_formats import TICKS_PER_SECOND
from app.live.projection import Event, Projection, error_of, live_event
from app.live.schema import (
    InputAppend,
    InputMute,
    InputUnmute,
    InstructionsAppend,
    LiveEvent,
    SessionClose,
    parse_live_event,
)
from app.pace import ClientPace, SlowClientError, break_off
from app.realtime.client_events import AudioAppend, ItemCreate
from app.realtime.failure import EventError
from app.realtime.inbox import ClientSaid, SocketLost, SoundSent
from app.realtime.item_schema import InputText, MessageItem
from app.realtime.outbox import Closing, Frame, Outbox
from app.realtime.session import Session
from app.realtime.sounds import INLINE_CHARACTERS, sound_of

logger = logging.getLogger(__name__)

LEAD_SECONDS = 0.3
"""How far sound is sent ahead of being heard: what an interruption finds in the client's buffer."""

SILENCE_SECONDS = 0.2
"""Silence is sent in pieces of this length, each when its time is over: an answer never waits for
silence that was sent ahead."""


class LiveSocket:
    """Serves a session on one accepted socket."""

    def __init__(
        self, websocket: WebSocket, session: Session, outbox: Outbox, projection: Projection
    ) -> None:
        """The session must have been told of the outbox."""
        self._websocket = websocket
        self._session = session
        self._outbox = outbox
        self._projection = projection
        self._settings = session.services.settings
        self._muted = False
        self._slow = False
        self._pace = ClientPace(session.services.settings.slow_client_seconds)
        self._sending = asyncio.Lock()

    async def run(self, client_event_id: str | None) -> None:
        """Serves until either side ends it; every task has ended then.

        Args:
            client_event_id: What the client called its `session.start`.
        """
        started = self._projection.resource(self._wire())
        hello = live_event("session.started", client_event_id, session=started)
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._send(hello)
            reader = asyncio.create_task(self._read(), name="live reader")
            writer = asyncio.create_task(self._write(), name="live writer")
            tasks += [reader, writer]
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done() and not reader.done():
                writer.result()
                await self._end(self._outbox.closing)
            elif reader.done():
                reader.result()
        except SlowClientError:
            logger.info("%s: the client reads too slowly; cut off.", self._session.id)
            self._slow = True
            break_off(self._websocket.scope)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._outbox.close(Closing(1000, "the client left", orderly=False))
            self._session.tell(SocketLost(self._outbox, slow=self._slow))

    async def _end(self, closing: Closing | None) -> None:
        """Says goodbye where the server ends the session."""
        if closing is None:
            return
        if "expired" in closing.reason:
            await self._send(self._projection.closed(self._wire(), "expired", None))
        await self._websocket.close(closing.code, closing.reason)

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            try:
                event, sound = await self._parse(message.get("text"))
                if isinstance(event, SessionClose):
                    closed = self._projection.closed(
                        self._wire(), "close_requested", event.event_id
                    )
                    await self._send(closed)
                    await self._websocket.close(1000, "closed by the client")
                    return
                await self._follow(event, sound)
            except EventError as refusal:
                await self._send(error_of(refusal.as_dict()))

    async def _parse(self, text: str | None) -> tuple[LiveEvent, bytes]:
        if text is None or len(text) <= INLINE_CHARACTERS:
            return self._read_event(text)
        return await self._session.services.codecs.run(lambda: self._read_event(text))

    def _read_event(self, text: str | None) -> tuple[LiveEvent, bytes]:
        """An event, and the sound that it appends."""
        event = parse_live_event(text)
        if not isinstance(event, InputAppend):
            return event, b""
        return event, sound_of(event.audio, self._settings.realtime_append_bytes)

    async def _follow(self, event: LiveEvent, sound: bytes) -> None:
        match event:
            case InputAppend():
                if self._muted:
                    # The ear must go on hearing time pass, or a turn would never end.
                    sound = self._projection.audio_format.silence(len(sound))
                append = AudioAppend(type="input_audio_buffer.append", audio="")
                await self._tell(append, event.event_id, sound)
            case InputMute() | InputUnmute():
                self._muted = isinstance(event, InputMute)
                word = "muted" if self._muted else "unmuted"
                await self._send(live_event(f"session.input_audio.{word}", event.event_id))
            case InstructionsAppend():
                part = InputText(type="input_text", text=event.content)
                item = MessageItem(type="message", role="system", content=[part])
                create = ItemCreate(type="conversation.item.create", item=item)
                await self._tell(create, event.event_id)
                now = round(1000 * self._projection.seconds)
                appended = live_event(
                    "session.instructions.appended", event.event_id, start_ms=now, end_ms=now
                )
                await self._send(appended)
            case _:
                message = "The session has started already."
                raise EventError(message, "invalid_event", "type", event_id=event.event_id)

    async def _tell(
        self, event: AudioAppend | ItemCreate, event_id: str | None, *sounds: bytes
    ) -> None:
        named = event.model_copy(update={"event_id": event_id})
        await self._session.tell_from_client(ClientSaid(self._outbox, named, sounds))

    async def _write(self) -> None:
        """Sends what the session says; sound when its time has come, unless it was dropped."""
        while (frame := await self._head_or_silence()) is not None:
            if frame.item is not None:
                await self._until_due()
            if not self._outbox.take_if_next(frame):
                continue
            seconds = frame.ticks / TICKS_PER_SECOND
            for event in self._projection.project(frame):
                await self._send(event, seconds)
                seconds = 0.0
            if frame.item is not None:
                self._session.tell(SoundSent(frame.item, frame.ticks))

    async def _head_or_silence(self) -> Frame | None:
        """Waits for the next frame; as long as there is none, the client gets silence."""
        while True:
            # By the clock and not by adding waits up.
            silent = self._projection.sound_ends + SILENCE_SECONDS
            try:
                async with asyncio.timeout_at(silent):
                    return await self._outbox.head()
            except TimeoutError:
                await self._send_silence(SILENCE_SECONDS)

    async def _until_due(self) -> None:
        """Waits for the time at which sound is due; silence fills the time that is over already."""
        loop = asyncio.get_running_loop()
        ahead = self._projection.sound_ends - loop.time()
        if ahead > LEAD_SECONDS:
            await asyncio.sleep(ahead - LEAD_SECONDS)
        elif ahead < 0:
            await self._send_silence(-ahead)

    async def _send_silence(self, seconds: float) -> None:
        for event in self._projection.silence(seconds):
            await self._send(event, seconds)
            seconds = 0.0

    async def _send(self, event: Event, seconds: float = 0.0) -> None:
        try:
            async with self._sending:
                await self._pace.send(self._websocket.send_json(event), seconds)
        except (WebSocketDisconnect, RuntimeError):
            logger.debug("%s: the client left.", self._session.id)

    def _wire(self) -> dict[str, Any]:
        return self._session.config.as_wire(self._session.id, self._session.expires_at)
