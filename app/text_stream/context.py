"""One context: a text that grows, and its speech."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from enum import StrEnum

from app.audio.encoders import open_encoder
from app.audio.worker import StreamEncoder, to_base64
from app.engine_port import SpeechEngine
from app.errors import ApiError, invalid
from app.identifiers import new_identifier
from app.metrics import Outcome, Transport
from app.speech.framing import word_fields
from app.speech.stream import Piece, SpeechFailedError, SpokenStream
from app.speech.usage import usage_of
from app.state import AppState
from app.text_stream.events import SessionOptions, binary_audio, server_event
from app.text_stream.flushes import Flush, FlushTracker
from app.text_stream.options import ContextOptions
from app.text_stream.outbox import Outbox, Outgoing
from app.timeline import Endpoint, TraceContext
from engine import OmniRequest, TextInput

logger = logging.getLogger(__name__)

MOST_FLUSHES = 1000
"""Flushes of one context that may wait for their sound."""


class ContextState(StrEnum):
    """Where a context is in its life."""

    OPEN = "open"
    """Takes text."""
    CLOSED = "closed"
    """Has all its text and speaks the rest of it."""
    CANCELLED = "cancelled"
    """The client wants no more of it."""
    ENDED = "ended"


class SpeechContext:
    """Speaks a growing text into the outbox.

    It ends in exactly one event: `context.done`, `context.cancelled` or `context.failed`. Its own
    task sends it, and nothing of the context follows it.
    """

    def __init__(
        self,
        options: ContextOptions,
        session: SessionOptions,
        state: AppState,
        engine: SpeechEngine,
        outbox: Outbox,
        tenant: str,
        trace: TraceContext,
    ) -> None:
        """Nothing is spoken before `run`."""
        self.options = options
        self.state = ContextState.OPEN
        self._session = session
        self._app = state
        self._engine = engine
        self._outbox = outbox
        self._text = TextInput()
        self._characters: list[str] = []
        self._length = 0
        self._flushes = FlushTracker()
        self._first_text: float | None = None
        self._ending: Outgoing | None = None
        self._task: asyncio.Task[None] | None = None
        self._outcome = Outcome.DISCONNECTED
        self._request = self._engine_request(tenant)
        self.record = state.timelines.open(self._request, Endpoint.TEXT_STREAM, trace=trace)
        self._stream = self._open_stream()

    def _engine_request(self, tenant: str) -> OmniRequest:
        return OmniRequest(
            request_id=new_identifier("ctx"),
            text=self._text,
            parameters=self.options.parameters,
            tenant=tenant,
            deadline=self._app.settings.request_deadline_seconds,
        )

    def _open_stream(self) -> SpokenStream:
        encoder = open_encoder(
            self.options.audio_format,
            self._engine.description.sample_rate,
            unknown_wav_size=self._app.settings.streamed_wav_size,
        )
        plain = self.options.audio_format.is_plain
        return SpokenStream(
            self._engine,
            self._request,
            StreamEncoder(self._app.codecs, encoder, plain=plain),
            self.record,
            may_be_silent=True,
        )

    def start(self) -> asyncio.Task[None]:
        """Begins to speak; the task ends after the context's last event was sent."""
        self._task = asyncio.create_task(self._run(), name=f"context {self.options.context_id}")
        return self._task

    async def append(self, text: str) -> None:
        """Adds text.

        Raises:
            ApiError: The context takes no more text, or it would be too long.
        """
        self._check_open()
        if not text:
            return
        limit = self._app.settings.websocket_context_characters
        if self._length + len(text) > limit:
            message = f"A context may hold {limit} characters; open another one for the rest."
            raise invalid("text", message, "string_above_max_length")
        if self._first_text is None and text.strip():
            self._first_text = time.perf_counter()
        self._characters.append(text)
        self._length += len(text)
        self._flushes.add_text(text)
        await self._text.write(text)

    def flush(self, client_event_id: str | None) -> None:
        """Has everything so far spoken to its end.

        Raises:
            ApiError: The context takes no more text, or no more flushes for now.
        """
        self._check_open()
        if self._flushes.waiting >= MOST_FLUSHES:
            message = f"{MOST_FLUSHES} flushes of this context wait for their sound already."
            raise invalid("context_id", message, "too_many_flushes")
        self._text.flush()
        self._flushes.add_flush(client_event_id)
        self._tell_flushed(self._flushes.advance((), self._stream.seconds))

    def finish_text(self) -> None:
        """Ends the text; the rest of it will be spoken.

        Raises:
            ApiError: It was ended before.
        """
        self._check_open()
        self.state = ContextState.CLOSED
        self._text.close()

    def cancel(self) -> None:
        """Ends the context at once. Harmless while an earlier cancellation is going on.

        Raises:
            ApiError: Its last event is on its way already.
        """
        if self.state is ContextState.ENDED or (self._ending is not None and self._ending.taken):
            raise self._not_active()
        if self.state is not ContextState.CANCELLED and self._task is not None:
            self.state = ContextState.CANCELLED
            self._task.cancel()

    async def give_up(self) -> None:
        """Ends the request in the engine, since the client is too slow."""
        self._outcome = Outcome.SLOW_CLIENT
        await self._stream.give_up()

    def _check_open(self) -> None:
        if self.state is not ContextState.OPEN:
            raise self._not_active()

    def _not_active(self) -> ApiError:
        message = f"The context {self.options.context_id!r} is {self.state}."
        return invalid("context_id", message, "context_not_active")

    async def _run(self) -> None:
        metrics = self._app.metrics
        try:
            with metrics.active.labels(Transport.WEBSOCKET).track_inprogress():
                await self._speak_to_the_end()
        except asyncio.CancelledError:
            # By now the engine has acknowledged the abort. What the writer does not have yet goes.
            self._outbox.purge(self.options.context_id)
            if self.state is not ContextState.CANCELLED:
                raise
            self._outcome = Outcome.CANCELLED
            self._put("context.cancelled")
        finally:
            self.state = ContextState.ENDED
            self._text.close()
            metrics.requests.labels(Transport.WEBSOCKET, self._outcome).inc()
            metrics.audio_seconds.labels(Transport.WEBSOCKET).inc(self._stream.seconds)
            self._app.timelines.close(self.record, self._outcome)

    async def _speak_to_the_end(self) -> None:
        try:
            async with aclosing(self._stream.pieces()) as pieces:
                async for piece in pieces:
                    await self._send(piece)
            left_out = await self._left_out()
        except SpeechFailedError as failure:
            ending = self._put("context.failed", error=failure.error.as_dict())
            outcome = failure.outcome
        else:
            self._tell_flushed(self._flushes.finish())
            ending = self._put(
                "context.done",
                seconds=round(self._stream.seconds, 4),
                usage=usage_of(self._length, self._stream.seconds),
                left_out=left_out or None,
            )
            outcome = Outcome.COMPLETED
        # Until the ending is on its way a cancellation still takes back what waits before it.
        self._ending = ending
        await ending.sent.wait()
        self._outcome = outcome

    async def _send(self, piece: Piece) -> None:
        name = self.options.context_id
        if self.options.word_timestamps:
            for word in piece.words:
                self._put("word", **word_fields(word))
        if piece.data:
            if self._session.audio == "binary":
                frame: str | bytes = binary_audio(name, piece.data)
            else:
                audio = to_base64(piece.data)
                frame = server_event("audio.delta", context_id=name, audio=audio)
            began = time.monotonic()
            await self._outbox.put_audio(name, frame, piece.seconds)
            self.record.blocked += time.monotonic() - began
            self.record.sent()
            self._note_first_audio()
        self._tell_flushed(self._flushes.advance(piece.words, self._stream.seconds))

    def _note_first_audio(self) -> None:
        if self._first_text is not None:
            waited = time.perf_counter() - self._first_text
            self._app.metrics.first_audio.labels(Transport.WEBSOCKET).observe(waited)
            self._first_text = None

    async def _left_out(self) -> list[str]:
        text = "".join(self._characters)
        report = await self._app.codecs.run(lambda: self._engine.inspect(text))
        return list(report.left_out)

    def _tell_flushed(self, flushes: list[Flush]) -> None:
        for flush in flushes:
            self._put("context.flushed", client_event_id=flush.client_event_id)

    def _put(self, event_type: str, **fields: object) -> Outgoing:
        name = self.options.context_id
        return self._outbox.put(name, server_event(event_type, context_id=name, **fields))
