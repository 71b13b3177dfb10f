"""The responses of one session: from a plan to events; the actor alone calls it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.audio.wire_formats import TICKS_PER_SECOND
from app.identifiers import new_identifier
from app.realtime.inbox import CallMade, SoundMade, TextMade, Told, WorkDone, WorkLeft
from app.realtime.items import Message, Part, PartKind, as_messages, newest
from app.realtime.machine_events import NothingSaid, Outcome, Reason
from app.realtime.output import ResponseOutput
from app.realtime.plan import ResponsePlan, chat_of
from app.realtime.reading_ahead import ReadingAhead
from app.realtime.services import Services
from app.realtime.session_config import SessionConfig
from app.realtime.shares import shares
from app.realtime.stage import Stage
from app.realtime.work import ResponseWork, WorkOrder
from app.speech.command import resolve_voice
from engine import (
    AbortReason,
    ErrorCode,
    OmniRequest,
    RequestTimes,
    SpeechParameters,
    StageError,
    TextInput,
    UsagePayload,
)

logger = logging.getLogger(__name__)

SPOKEN_ROUTE = "chat"
WRITTEN_ROUTE = "chat_text"


@dataclass(slots=True)
class _Response:
    output: ResponseOutput
    opened: float = field(default_factory=time.monotonic)
    closed: float | None = None
    times: RequestTimes | None = None
    task: asyncio.Task[None] | None = None
    usage: UsagePayload | None = None
    error: StageError | None = None
    heard: bool = False


class Responder:
    """Runs the responses that the state machine opens."""

    def __init__(
        self, stage: Stage, services: Services, tenant: str, tell: Callable[[Told], None]
    ) -> None:
        """Runs nothing yet.

        Args:
            stage: The session's conversation and its socket.
            services: What all sessions share.
            tenant: Whose turn it is in the engine's waiting line.
            tell: Puts something into the actor's inbox.
        """
        self._stage = stage
        self._services = services
        self._tenant = tenant
        self._tell = tell
        self._responses: dict[str, _Response] = {}
        self._ahead = ReadingAhead(services.engine)

    async def join(self) -> None:
        """Stops whatever is at work; the engine has let go of all of it when this returns."""
        tasks = [one.task for one in self._responses.values() if one.task is not None]
        for task in tasks:
            # Cancelling twice would cut short the wait for the engine's acknowledgement.
            if not task.cancelling():
                task.cancel()
        await asyncio.gather(*tasks, self._ahead.join(), return_exceptions=True)

    def read_ahead(self, config: SessionConfig, said: str) -> None:
        """Lets the Thinker read what the user seems to have said, if it has nothing else to do."""
        description = self._services.engine.description
        # A Thinker that hears will be given the sound and not these words.
        known = WRITTEN_ROUTE in description.routes and not description.hears
        if not known or not self._ahead.allowed:
            return
        turn = Message("turn", "user", [Part(PartKind.INPUT_AUDIO, said)])
        items = (*self._stage.conversation.items, turn)
        plan = ResponsePlan(new_identifier("ahead"), config, None, items=items)
        self._ahead.begin(replace(self._request(plan), route=WRITTEN_ROUTE))

    def open(self, plan: ResponsePlan) -> None:
        """Tells the client that there is a response."""
        conversation = self._stage.conversation if plan.conversation_id is not None else None
        timed = self._services.engine.description.word_timings
        output = ResponseOutput(plan, conversation, timed=timed)
        self._responses[plan.response_id] = _Response(output)
        self._stage.send(*output.created())

    def start(self, response_id: str) -> None:
        """Lets the engine begin."""
        response = self._responses[response_id]
        turn = response.output.plan.turn
        if turn is not None and self._stage.conversation.says_nothing_new(turn):
            # A cough is no question: the response that was announced ends without a word.
            self._tell(WorkDone(response_id, None))
            self._tell(WorkLeft(response_id))
            return
        self._ahead.stop()
        request = self._request(response.output.plan)
        response.times = request.times
        work = ResponseWork(
            WorkOrder(
                request=request,
                engine=self._services.engine,
                codecs=self._services.codecs,
                timelines=self._services.timelines,
                trace=self._stage.trace,
                output_format=response.output.plan.config.output_format,
                outbox=lambda: self._stage.outbox,
                tell=self._tell,
            )
        )
        response.task = asyncio.create_task(self._run(work, response.output.plan))
        response.task.add_done_callback(lambda task: self._left(response_id, task))

    def nothing_said(self, turn: str) -> NothingSaid | None:
        """If a turn's words are known and there are none: what that means for its answer."""
        for response_id, response in self._responses.items():
            live = response.output.plan.turn == turn and response.closed is None
            if live and self._stage.conversation.says_nothing_new(turn):
                return NothingSaid(response_id, begun=response.output.message is not None)
        return None

    async def _run(self, work: ResponseWork, plan: ResponsePlan) -> None:
        route = SPOKEN_ROUTE if plan.spoken else WRITTEN_ROUTE
        if route not in self._services.engine.description.routes:
            message = (
                f"The pipeline {self._services.engine.description.name!r} only speaks; start the "
                "server with one that answers, such as 'conversation'."
            )
            error = StageError(ErrorCode.INVALID_REQUEST, message)
            self._tell(WorkDone(plan.response_id, None, error))
            return
        await work.run()

    def _request(self, plan: ResponsePlan) -> OmniRequest:
        items = self._stage.conversation.items if plan.items is None else plan.items
        messages = as_messages(plan.config.instructions, items)
        if plan.config.truncation != "disabled":
            messages = newest(messages, self._services.settings.realtime_history_characters)
        description = self._services.engine.description
        return OmniRequest(
            request_id=plan.response_id,
            text=TextInput.whole(""),
            parameters=SpeechParameters(
                voice=resolve_voice(plan.config.voice, description), speed=plan.config.speed
            ),
            route=SPOKEN_ROUTE if plan.spoken else WRITTEN_ROUTE,
            chat=chat_of(plan.config, messages),
            session=None if plan.conversation_id is None else self._stage.session_id,
            tenant=self._tenant,
            deadline=self._services.settings.request_deadline_seconds,
        )

    async def give_up(self) -> None:
        """Ends what is being made in the engine, since the client is too slow."""
        engine = self._services.engine
        working = [name for name, one in self._responses.items() if one.task is not None]
        await asyncio.gather(*(engine.abort(name, AbortReason.SLOW_CLIENT) for name in working))

    def stop(self, response_id: str) -> None:
        """Aborts a response in the engine; `WorkLeft` says when nothing is left of it."""
        response = self._responses.get(response_id)
        task = None if response is None else response.task
        if task is not None and not task.cancelling():
            task.cancel()

    def made(self, made: SoundMade | TextMade | CallMade) -> None:
        """Passes on what the engine made, unless its response has ended for the client."""
        response = self._responses.get(made.response_id)
        if isinstance(made, SoundMade):
            made.outbox.reserve(-len(made.data))
        if response is None or response.closed is not None:
            return
        output = response.output
        match made:
            case SoundMade():
                if not response.heard:
                    response.heard = True
                    self._note_first_sound(response)
                events = output.sound(made.data, made.words)
            case TextMade():
                events = output.text(made.text)
            case CallMade():
                events = output.call(made.call)
        self._stage.send(*events)

    def _note_first_sound(self, response: _Response) -> None:
        now, metrics = time.monotonic(), self._services.metrics
        metrics.first_sound.observe(now - response.opened)
        if response.times is not None:
            for part, seconds in shares(response.times, response.opened, now).items():
                metrics.first_sound_share.labels(part).observe(seconds)

    def done(self, done: WorkDone) -> tuple[Outcome, Reason | None]:
        """Notes how the engine's work ended; says what that means for the response."""
        response = self._responses.get(done.response_id)
        if response is not None:
            response.usage, response.error = done.usage, done.error
        if done.error is not None:
            if done.error.code is ErrorCode.CANCELLED:
                return Outcome.CANCELLED, Reason.CLIENT_CANCELLED
            return Outcome.FAILED, None
        if done.usage is not None and done.usage.truncated:
            return Outcome.INCOMPLETE, Reason.MAX_OUTPUT_TOKENS
        return Outcome.COMPLETED, None

    def close(self, response_id: str, outcome: Outcome, reason: Reason | None) -> None:
        """Tells the client the end of a response; nothing more of it is sent."""
        response = self._responses[response_id]
        response.closed = time.monotonic()
        message = response.output.message
        if outcome is Outcome.CANCELLED and message is not None:
            dropped = self._stage.drop_sound(message.id)
            self._services.metrics.dropped_sound.inc(dropped / TICKS_PER_SECOND)
            response.output.interrupt(self._stage.playback.heard(message.id), dropped)
        self._services.metrics.responses.labels(outcome).inc()
        events = response.output.finish(
            outcome, reason, error=_error(response.error), usage=response.usage
        )
        self._stage.send(*events)
        if response.task is None:
            del self._responses[response_id]

    def left(self, left: WorkLeft) -> None:
        """Forgets a response whose task has ended."""
        response = self._responses.get(left.response_id)
        if response is None:
            return
        if response.closed is not None:
            waited = time.monotonic() - response.closed
            self._services.metrics.interruption.observe(waited)
            del self._responses[left.response_id]

    def _left(self, response_id: str, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            logger.error("Response %s raised.", response_id, exc_info=failure)
            error = StageError(
                ErrorCode.STAGE_FAILED, "The server made a mistake while it answered."
            )
            self._tell(WorkDone(response_id, None, error))
        self._tell(WorkLeft(response_id, failure))


def _error(error: StageError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    wrong = error.code is ErrorCode.INVALID_REQUEST
    kind = "invalid_request_error" if wrong else "server_error"
    return {"type": kind, "code": error.code.value, "message": error.message}
