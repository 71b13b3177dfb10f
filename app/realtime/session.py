"""One realtime session: the actor that alone changes the session's state.

The ear, the engine's work, the timers and the socket tell it things through one inbox; it tells the
pure state machine, and does what that says.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from app.ear.listener import Listener
from app.identifiers import new_identifier
from app.realtime import commands, takeover
from app.realtime.conversation import Conversation
from app.realtime.effects import perform
from app.realtime.failure import EventError
from app.realtime.hearing import Hearing, sensitivity_of, stretch_of
from app.realtime.inbox import (
    CallMade,
    ClientErred,
    ClientSaid,
    CloseAsked,
    EarFound,
    SocketLost,
    SocketOpened,
    SoundMade,
    SoundSent,
    TextMade,
    Timer,
    TimeUp,
    Told,
    WorkDone,
    WorkLeft,
)
from app.realtime.journal import Journal
from app.realtime.machine_events import (
    Event,
    SessionClosed,
    SilenceElapsed,
    WorkEnded,
    WorkJoined,
)
from app.realtime.outbox import Closing, Outbox
from app.realtime.output import ServerEvent
from app.realtime.plan import ResponsePlan
from app.realtime.playback import Playback
from app.realtime.responder import Responder
from app.realtime.services import Services
from app.realtime.session_config import SessionConfig
from app.realtime.stage import Stage
from app.realtime.state import State, next_state
from app.realtime.timers import Timers

logger = logging.getLogger(__name__)

MOST_CLIENT_EVENTS = 64
"""Events of the client that may wait for the actor; the socket is not read further meanwhile."""

JOURNAL_BYTES = 4 << 20
"""What is kept for a client that comes back: about a minute of sound."""


class Session:
    """One realtime session.

    Attributes:
        id: Its name.
        config: Its effective settings.
        state: What the state machine says is true.
        stage: Its conversation and the way to its client.
        responder: Its responses.
        hearing: Its ear.
        plans: Responses that are to be opened, by name.
        expires_at: Unix time.
        resume_token: Lets a client take the session over; None where it did not ask for that.
    """

    def __init__(self, services: Services, config: SessionConfig, tenant: str) -> None:
        """Begins without a socket; `run` is the actor's life."""
        settings = services.settings
        loop = asyncio.get_running_loop()
        self.id = new_identifier("sess")
        self.services = services
        self.config = config
        self.tenant = tenant
        self.state = State(rules=commands.rules_of(config))
        self.expires_at = int(time.time() + settings.realtime_session_seconds)
        self.resume_token: str | None = None
        conversation = Conversation(new_identifier("conv"), settings.realtime_items)
        self.stage = Stage(self.id, conversation, Playback(loop.time), self.new_outbox())
        self.responder = Responder(self.stage, services, tenant, self.tell)
        self.plans: dict[str, ResponsePlan] = {}
        self.timers = Timers(self.tell)
        self.hearing = Hearing(self._listener(), settings, services.engine, self.tell)
        self._inbox: asyncio.Queue[Told] = asyncio.Queue()
        self._room = asyncio.Semaphore(MOST_CLIENT_EVENTS)
        self._closing: Closing | None = None
        self._slow = False
        self._odd_bytes = 0

    def _listener(self) -> Listener | None:
        if self.services.ear is None:
            return None
        listener = Listener(
            self.services.ear,
            sensitivity_of(self.services.settings),
            lambda finding: self.tell(EarFound(finding)),
            stretch=stretch_of(self.services.engine.description, self.config),
        )
        listener.task.add_done_callback(self._listener_ended)
        return listener

    def _listener_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            logger.error("%s: the ear raised.", self.id, exc_info=task.exception())
            self.tell(CloseAsked(Closing(1011, "the server made a mistake")))

    def new_outbox(self) -> Outbox:
        """An outbox for a socket that is to serve the session."""
        settings = self.services.settings
        return Outbox(settings.realtime_queue_bytes, settings.realtime_control_bytes)

    def make_resumable(self) -> str:
        """Lets a client take the session over; returns the token that proves it may."""
        self.resume_token = secrets.token_urlsafe(24)
        self.stage.journal = Journal(JOURNAL_BYTES)
        return self.resume_token

    def tell(self, told: Told) -> None:
        """Puts something into the inbox, from anywhere on the event loop."""
        self._inbox.put_nowait(told)

    async def tell_from_client(self, told: ClientSaid | ClientErred) -> None:
        """Puts something of the client's in; waits while the session is behind."""
        await self.hearing.room()
        await self._room.acquire()
        self.tell(told)

    async def run(self) -> None:
        """The actor's life. When it returns, every task of the session has ended."""
        self.services.metrics.sessions.inc()
        self.timers.expire_after(self.services.settings.realtime_session_seconds)
        try:
            self.hearing.configure(self.config)
            while self._closing is None:
                self._follow(await self._inbox.get())
                if self.stage.outbox.overfull:
                    self.end_slow_client()
        finally:
            await self._end()

    async def _end(self) -> None:
        closing = self._closing or Closing(1011, "the server made a mistake", orderly=False)
        self.timers.close()
        if self._slow:
            await self.responder.give_up()
        self.step(SessionClosed())
        self.stage.outbox.close(closing)
        await self.responder.join()
        ending = asyncio.ensure_future(self.services.engine.end_session(self.id))
        await asyncio.gather(self.hearing.close(), ending, return_exceptions=True)
        self.services.metrics.sessions.dec()

    def step(self, event: Event) -> None:
        """Lets the state machine follow an event, and does what it says."""
        self.state, effects = next_state(self.state, event)
        for effect in effects:
            perform(self, effect)

    def send(self, kind: str, **fields: object) -> None:
        """Sends an event that belongs to no response."""
        self.stage.send(ServerEvent({"type": kind, **fields}))

    def refuse(self, refusal: EventError) -> None:
        """Sends an `error`; the session goes on."""
        self.services.metrics.errors.labels(refusal.code).inc()
        self.send("error", error=refusal.as_dict())

    @property
    def answer_is_heard(self) -> bool:
        """Whether the user hears an answer now, as far as a clock can tell."""
        return self.stage.playback.going_on

    def count_ticks(self, sound: bytes) -> int:
        """How long appended bytes last; half a sample is counted with its other half."""
        audio_format = self.config.input_format
        self._odd_bytes += len(sound)
        ticks = audio_format.ticks(self._odd_bytes)
        self._odd_bytes %= audio_format.bytes_per_sample
        return ticks

    def drop_half_sample(self) -> None:
        """The other half of a sample will not come."""
        self._odd_bytes = 0

    def stop_sound(self) -> None:
        """The client stops hearing the answer that it was sent."""
        seconds = self.stage.stop_sound()
        self.services.metrics.dropped_sound.inc(seconds)

    def close(self, code: int, reason: str, *, orderly: bool = True) -> None:
        """Ends the session after what is being followed now."""
        if self._closing is None:
            self._closing = Closing(code, reason, orderly)

    def send_session(self, kind: str) -> None:
        """Sends `session.created` or `session.updated`, with everything in it."""
        session = self.config.as_wire(self.id, self.expires_at)
        if self.resume_token is not None:
            session["resume_token"] = self.resume_token
        self.send(kind, session=session)

    def end_slow_client(self) -> None:
        """Ends the session, since its client leaves its events unread."""
        logger.info("%s: the client leaves its events unread; cut off.", self.id)
        self._slow = True
        self.close(1008, "the client reads too slowly", orderly=False)

    def _follow(self, told: Told) -> None:
        match told:
            case ClientSaid() | ClientErred():
                self._room.release()
                self._follow_client(told)
            case EarFound():
                self.hearing.follow(self, told.finding)
            case SoundMade() | TextMade() | CallMade():
                self.responder.made(told)
            case WorkDone():
                outcome, reason = self.responder.done(told)
                self.step(WorkEnded(told.response_id, outcome, reason))
            case WorkLeft():
                self.responder.left(told)
                self.step(WorkJoined(told.response_id))
            case SoundSent():
                self.stage.playback.sent(told.item_id, told.ticks)
            case TimeUp():
                self._follow_timer(told)
            case SocketOpened():
                takeover.socket_opened(self, told)
            case SocketLost():
                takeover.socket_lost(self, told)
            case CloseAsked():
                self.close(told.closing.code, told.closing.reason)

    def _follow_client(self, said: ClientSaid | ClientErred) -> None:
        if said.outbox is not self.stage.outbox:
            return  # another socket has taken the session over
        if isinstance(said, ClientErred):
            self.refuse(said.refusal)
            return
        try:
            commands.follow(self, said)
        except EventError as refusal:
            refusal.event_id = said.event.event_id
            self.refuse(refusal)

    def _follow_timer(self, up: TimeUp) -> None:
        match up.timer:
            case Timer.EXPIRED:
                message = "Your session hit the maximum duration."
                self.refuse(EventError(message, "session_expired"))
                self.close(1000, "session expired")
            case Timer.RESUME if up.number == self.timers.number(Timer.RESUME):
                self.close(1000, "nobody came back")
            case Timer.IDLE if up.number == self.timers.number(Timer.IDLE):
                if self.stage.playback.going_on:
                    self.arm_idle_timer()
                    return
                item_id, response_id = new_identifier("item"), new_identifier("resp")
                self.step(SilenceElapsed(item_id, response_id))
            case _:
                pass  # it was set anew meanwhile

    def arm_idle_timer(self) -> None:
        """Waits for the user's silence after an answer, if the session's settings say so."""
        detection = self.config.detection
        silence_ms = None
        if detection is not None and detection.type == "server_vad":
            silence_ms = detection.idle_timeout_ms
        if silence_ms is not None:
            self.timers.set(Timer.IDLE, self.stage.playback.ends + silence_ms / 1000)
