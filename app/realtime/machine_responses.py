"""The part of the session's state machine that is about responses."""

from __future__ import annotations

from dataclasses import replace

from app.realtime.machine_events import (
    CancelAsked,
    CloseResponse,
    NothingSaid,
    OpenResponse,
    Origin,
    Outcome,
    Reason,
    Refuse,
    ResponseAsked,
    StartWork,
    StopWork,
    WorkEnded,
    WorkJoined,
)
from app.realtime.machine_state import ActiveResponse, Phase, State


def answer_turn(state: State, response_id: str) -> State:
    """Answers a turn that ended, now or after the response that is being made."""
    if not state.rules.create_response:
        return state
    if state.active is not None:
        return state.but(owed=response_id)
    return open_response(state, response_id, Origin.TURN)


def interrupt(state: State) -> State:
    """A turn begins: the response that is being made, or owed, is not wanted any more."""
    interrupted = state.but(owed=None)
    if state.active is None:
        return interrupted
    return end_active(interrupted, Outcome.CANCELLED, Reason.TURN_DETECTED)


def response_asked(state: State, event: ResponseAsked) -> State:
    """Opens a response that the client asks for, or refuses it."""
    if not event.in_conversation:
        return state.but(
            OpenResponse(event.response_id, False, Origin.CLIENT),
            StartWork(event.response_id),
            beside=state.beside | {event.response_id},
        )
    if state.active is not None:
        return state.but(
            Refuse(
                "Conversation already has an active response in progress: "
                f"{state.active.response_id}. Wait until the response is finished before "
                "creating a new one.",
                "conversation_already_has_active_response",
                event.event_id,
            )
        )
    return open_response(state, event.response_id, Origin.CLIENT)


def open_response(state: State, response_id: str, origin: Origin) -> State:
    """Makes a response the conversation's own."""
    return state.but(
        OpenResponse(response_id, True, origin), active=ActiveResponse(response_id), owed=None
    )


def cancel_asked(state: State, event: CancelAsked) -> State:
    """Stops the response that the client names, or the conversation's."""
    wanted = event.response_id
    if wanted is not None and wanted in state.beside:
        return state.but(
            CloseResponse(wanted, Outcome.CANCELLED, Reason.CLIENT_CANCELLED),
            StopWork(wanted),
            beside=state.beside - {wanted},
        )
    if state.active is None or wanted not in (None, state.active.response_id):
        return state.but(
            Refuse(
                "Cancellation failed: no active response found",
                "response_cancel_not_active",
                event.event_id,
            )
        )
    return end_active(state.but(owed=None), Outcome.CANCELLED, Reason.CLIENT_CANCELLED)


def nothing_said(state: State, event: NothingSaid) -> State:
    """Ends the answer to a turn that turned out to have no words, if it is being made."""
    active = state.active
    if active is None or active.response_id != event.response_id:
        return state
    if active.phase is Phase.WAITING:
        return state  # looked at again before it begins
    if event.begun:
        return end_active(state, Outcome.CANCELLED, Reason.TURN_DETECTED)
    return end_active(state, Outcome.COMPLETED, None)


def end_active(state: State, outcome: Outcome, reason: Reason | None) -> State:
    """Ends the conversation's response for the client, and stops the engine if it is at work."""
    active = state.active
    assert active is not None
    closing = CloseResponse(active.response_id, outcome, reason)
    if active.phase is Phase.WAITING:
        return state.but(closing, active=None)
    return state.but(
        closing,
        StopWork(active.response_id),
        active=None,
        draining=state.draining | {active.response_id},
    )


def follow_work(state: State, event: WorkEnded | WorkJoined) -> State:
    """The engine ended, or has let go of, a response."""
    response_id = event.response_id
    if isinstance(event, WorkJoined):
        return state.but(draining=state.draining - {response_id})
    closing = CloseResponse(response_id, event.outcome, event.reason)
    if response_id in state.beside:
        return state.but(closing, beside=state.beside - {response_id})
    if state.active is not None and state.active.response_id == response_id:
        return state.but(closing, active=None, draining=state.draining | {response_id})
    return state  # its end was sent when it was stopped


def advance(state: State) -> State:
    """Begins what nothing keeps waiting any more."""
    if state.closed:
        return state
    if state.owed is not None and state.active is None:
        state = open_response(state, state.owed, Origin.TURN)
    active = state.active
    # One that still drains is no reason to wait: the engine fences it before this one begins.
    if active is None or active.phase is not Phase.WAITING or state.unheard:
        return state
    return state.but(StartWork(active.response_id), active=replace(active, phase=Phase.RUNNING))
