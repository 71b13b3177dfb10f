"""Does what the state machine says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.audio.wire_formats import milliseconds
from app.realtime.failure import EventError
from app.realtime.inbox import Timer
from app.realtime.items import Message, Part, PartKind
from app.realtime.machine_events import (
    CloseResponse,
    Commit,
    Effect,
    OpenResponse,
    Refuse,
    RestartHearing,
    StartWork,
    StopWork,
    TellCleared,
    TellSpeechStarted,
    TellSpeechStopped,
    TellTimeout,
)
from app.realtime.plan import ResponsePlan

if TYPE_CHECKING:
    from app.realtime.session import Session


def perform(session: Session, effect: Effect) -> None:
    """Does one thing."""
    match effect:
        case TellSpeechStarted():
            _speech_started(session, effect)
        case TellSpeechStopped():
            session.send(
                "input_audio_buffer.speech_stopped",
                audio_end_ms=milliseconds(effect.end),
                item_id=effect.item_id,
            )
        case TellCleared():
            session.send("input_audio_buffer.cleared")
        case Commit():
            add_turn(session, effect.item_id)
            session.hearing.commit(effect.item_id, effect.start, effect.end)
        case RestartHearing():
            session.drop_half_sample()
            session.hearing.restart(effect.hearing, effect.start)
        case TellTimeout():
            _timed_out(session, effect)
        case Refuse():
            refusal = EventError(
                effect.message, effect.code, effect.param, event_id=effect.event_id
            )
            session.refuse(refusal)
        case _:
            _respond(session, effect)


def _respond(session: Session, effect: OpenResponse | StartWork | StopWork | CloseResponse) -> None:
    match effect:
        case OpenResponse():
            session.responder.open(_plan(session, effect))
        case StartWork():
            session.responder.start(effect.response_id)
        case StopWork():
            session.responder.stop(effect.response_id)
        case CloseResponse():
            session.responder.close(effect.response_id, effect.outcome, effect.reason)
            session.arm_idle_timer()


def _plan(session: Session, effect: OpenResponse) -> ResponsePlan:
    """What the client asked for; for the answer to a turn, the session's settings."""
    plan = session.plans.pop(effect.response_id, None)
    if plan is not None:
        return plan
    conversation = session.stage.conversation
    return ResponsePlan(
        effect.response_id, session.config, conversation.id, turn=conversation.unheard_turn
    )


def _speech_started(session: Session, effect: TellSpeechStarted) -> None:
    session.timers.cancel(Timer.IDLE)
    session.send(
        "input_audio_buffer.speech_started",
        audio_start_ms=milliseconds(effect.start),
        item_id=effect.item_id,
    )
    if session.state.rules.interrupt_response and session.state.active is None:
        # The answer may be over for the engine and still be heard; a client stops it now. What an
        # active response has sent is cut when that is closed.
        session.stop_sound()


def _timed_out(session: Session, effect: TellTimeout) -> None:
    session.send(
        "input_audio_buffer.timeout_triggered",
        audio_start_ms=milliseconds(effect.at),
        audio_end_ms=milliseconds(effect.at),
        item_id=effect.item_id,
    )
    add_turn(session, effect.item_id, text="")


def add_turn(session: Session, item_id: str, text: str | None = None) -> None:
    """A turn of the user's has become an item; its words are known already or will be."""
    item = Message(item_id, "user", [Part(PartKind.INPUT_AUDIO, text)])
    previous = session.stage.conversation.append(item)
    session.send("input_audio_buffer.committed", item_id=item_id, previous_item_id=previous)
    for kind in ("conversation.item.added", "conversation.item.done"):
        session.send(kind, previous_item_id=previous, item=item.as_wire())
