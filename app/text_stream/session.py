"""One text-in WebSocket: a reader, a writer, and a task for each context."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import Enum

from starlette.websockets import WebSocket, WebSocketDisconnect

from app.audio.formats import OUTPUT_SAMPLE_RATE
from app.engine_port import SpeechEngine
from app.errors import ApiError, from_engine_error, invalid
from app.identifiers import new_identifier
from app.pace import ClientPace, SlowClientError, break_off
from app.request_context import context_of
from app.state import AppState
from app.text_stream.context import SpeechContext
from app.text_stream.events import (
    ClientEvent,
    ContextCancel,
    ContextCreate,
    EventError,
    SessionClose,
    SessionOptions,
    SessionUpdate,
    TextAppend,
    TextDone,
    TextFlush,
    error_event,
    parse_event,
    server_event,
)
from app.text_stream.options import created_event, resolve_options
from app.text_stream.outbox import Outbox
from engine import EngineError

logger = logging.getLogger(__name__)


class SessionEnd(Enum):
    """Why a session ends, with the close code and reason that the client is told."""

    ASKED = (1000, "closed by the client")
    IDLE = (1000, "idle for too long")
    DISCONNECTED = (1000, "")
    SLOW_CLIENT = (1008, "the client reads too slowly")

    @property
    def code(self) -> int:
        """The WebSocket close code."""
        return self.value[0]

    @property
    def reason(self) -> str:
        """The reason beside the close code."""
        return self.value[1]


@dataclass(slots=True)
class _Activity:
    """When something last happened, on the event loop's clock."""

    last: float

    def note(self) -> None:
        self.last = asyncio.get_running_loop().time()


class TextStreamSession:
    """Runs one accepted WebSocket to its end."""

    def __init__(
        self, websocket: WebSocket, state: AppState, engine: SpeechEngine, tenant: str
    ) -> None:
        """The socket must be accepted already."""
        self._websocket = websocket
        self._state = state
        self._settings = state.settings
        self._engine = engine
        self._tenant = tenant
        self._options = SessionOptions()
        self._outbox = Outbox(state.settings.websocket_queue_bytes)
        self._contexts: dict[str, SpeechContext] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._activity = _Activity(asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Serves the socket. When it returns, every task of the session has ended."""
        self._outbox.put(None, self._session_event("session.created"))
        reader = asyncio.create_task(self._read(), name="text stream reader")
        writer = asyncio.create_task(self._write(), name="text stream writer")
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            first = reader if reader.done() else writer
            await self._end(first.result(), writer)
        finally:
            await self._join(reader, writer)

    async def _end(self, end: SessionEnd, writer: asyncio.Task[SessionEnd]) -> None:
        """Says goodbye if there is anyone to hear it."""
        logger.debug("Text stream ends: %s", end.name)
        if end is SessionEnd.DISCONNECTED:
            return
        if end is SessionEnd.SLOW_CLIENT:
            break_off(self._websocket.scope)
            return
        await self._cancel_contexts()
        if end is SessionEnd.ASKED:
            self._outbox.put(None, server_event("session.closed"))
        self._outbox.finish()
        if await writer is SessionEnd.ASKED:
            await self._websocket.close(end.code, end.reason)

    async def _cancel_contexts(self) -> None:
        for context in list(self._contexts.values()):
            try:
                context.cancel()
            except ApiError:
                continue  # its last event is on its way
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _join(self, *tasks: asyncio.Task[SessionEnd]) -> None:
        for task in (*tasks, *self._tasks):
            task.cancel()
        await asyncio.gather(*tasks, *self._tasks, return_exceptions=True)

    async def _read(self) -> SessionEnd:
        while True:
            await self._outbox.control_room()
            try:
                message = await self._receive()
            except TimeoutError:
                self._refuse(EventError(_idle(self._settings.websocket_idle_seconds)))
                return SessionEnd.IDLE
            if message["type"] == "websocket.disconnect":
                return SessionEnd.DISCONNECTED
            self._activity.note()
            try:
                event = self._parse(message.get("text"))
                if isinstance(event, SessionClose):
                    return SessionEnd.ASKED
                await self._follow(event)
            except EventError as refusal:
                self._refuse(refusal)

    async def _receive(self) -> dict[str, str]:
        """The next message.

        Raises:
            TimeoutError: Neither side sent anything for the idle limit.
        """
        loop = asyncio.get_running_loop()
        receiving = asyncio.ensure_future(self._websocket.receive())
        try:
            while not receiving.done():
                deadline = self._activity.last + self._settings.websocket_idle_seconds
                if loop.time() >= deadline:
                    raise TimeoutError
                await asyncio.wait({receiving}, timeout=deadline - loop.time())
            return dict(receiving.result())
        finally:
            receiving.cancel()

    def _parse(self, text: str | None) -> ClientEvent:
        if text is None:
            message = "Events are JSON in text frames; binary frames mean nothing here."
            raise EventError(invalid(None, message, "invalid_event"))
        limit = self._settings.websocket_event_characters
        if len(text) > limit:
            message = f"The event has {len(text)} characters; at most {limit} are allowed."
            raise EventError(invalid(None, message, "event_too_large"))
        return parse_event(text)

    async def _follow(self, event: ClientEvent) -> None:
        """Does what an event asks for.

        Raises:
            EventError: It cannot be done.
        """
        context_id = None
        try:
            if isinstance(event, SessionUpdate):
                self._options = event.session
                self._outbox.put(None, self._session_event("session.updated"))
            elif isinstance(event, ContextCreate):
                context_id = event.context_id
                self._create(event)
            elif isinstance(event, TextAppend | TextFlush | TextDone | ContextCancel):
                context_id = event.context_id
                await self._apply(event, self._context(context_id))
        except EngineError as failure:
            raise EventError(from_engine_error(failure), event.event_id, context_id) from None
        except ApiError as error:
            raise EventError(error, event.event_id, context_id) from None

    async def _apply(
        self, event: TextAppend | TextFlush | TextDone | ContextCancel, context: SpeechContext
    ) -> None:
        match event:
            case TextAppend():
                await context.append(event.text)
            case TextFlush():
                context.flush(event.event_id)
            case TextDone():
                context.finish_text()
            case ContextCancel():
                context.cancel()

    def _context(self, context_id: str) -> SpeechContext:
        context = self._contexts.get(context_id)
        if context is None:
            message = f"There is no context {context_id!r} on this socket, or it has ended."
            raise invalid("context_id", message, "context_not_active")
        return context

    def _create(self, event: ContextCreate) -> None:
        context_id = event.context_id or new_identifier("context")
        if context_id in self._contexts:
            message = f"There is a context {context_id!r} already; use another name."
            raise invalid("context_id", message, "context_exists")
        if len(self._contexts) >= self._settings.websocket_contexts:
            message = f"At most {self._settings.websocket_contexts} contexts may be open at once."
            raise invalid("context_id", message, "too_many_contexts")
        options = resolve_options(event, context_id, self._engine.description, self._settings)
        context = SpeechContext(
            options,
            self._options,
            self._state,
            self._engine,
            self._outbox,
            self._tenant,
            context_of(self._websocket).trace,
        )
        self._contexts[context_id] = context
        self._outbox.put(context_id, created_event(options, context.record.request_id))
        task = context.start()
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._forget(context_id, ended))

    def _forget(self, context_id: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._contexts.pop(context_id, None)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("Context %s raised.", context_id, exc_info=failure)

    def _refuse(self, refusal: EventError) -> None:
        self._outbox.put(None, error_event(refusal))

    async def _write(self) -> SessionEnd:
        """Sends what waits in the outbox, until it is finished or nobody takes it."""
        pace = ClientPace(self._settings.slow_client_seconds, self._give_up)
        while (frame := await self._outbox.take()) is not None:
            if isinstance(frame.data, str):
                sending = self._websocket.send_text(frame.data)
            else:
                sending = self._websocket.send_bytes(frame.data)
            try:
                await pace.send(sending, frame.seconds)
            except SlowClientError:
                logger.info("A text stream's client fell too far behind real time; cut off.")
                return SessionEnd.SLOW_CLIENT
            except (WebSocketDisconnect, RuntimeError):
                return SessionEnd.DISCONNECTED
            frame.sent.set()
            self._activity.note()
        return SessionEnd.ASKED

    async def _give_up(self) -> None:
        await asyncio.gather(*(context.give_up() for context in self._contexts.values()))

    def _session_event(self, event_type: str) -> str:
        return server_event(
            event_type,
            session={
                "audio": self._options.audio,
                "sample_rate": OUTPUT_SAMPLE_RATE,
                "contexts": self._settings.websocket_contexts,
                "context_characters": self._settings.websocket_context_characters,
                "idle_seconds": self._settings.websocket_idle_seconds,
            },
        )


def _idle(seconds: float) -> ApiError:
    return invalid(None, f"Nothing was sent for {seconds:g} seconds.", "idle_timeout")
