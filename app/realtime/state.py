"""The session's state machine: turns, responses, interruption. Pure: no clock, no socket, no task.

`next_state(state, event)` says what is true afterwards and what has to be done. The session's actor
is the only one who calls it, and does what it says in that order.
"""

from __future__ import annotations

from dataclasses import replace

from app.realtime.machine_events import (
    AudioAppended,
    CancelAsked,
    ClearAsked,
    CloseResponse,
    Commit,
    CommitAsked,
    Effect,
    Event,
    NothingSaid,
    Outcome,
    Reason,
    Refuse,
    ResponseAsked,
    RestartHearing,
    Rules,
    RulesChanged,
    SessionClosed,
    SilenceElapsed,
    SoundDropped,
    SpeechStarted,
    SpeechStopped,
    StopWork,
    TellCleared,
    TellSpeechStarted,
    TellSpeechStopped,
    TellTimeout,
    TextPending,
    TextSettled,
    WorkEnded,
    WorkJoined,
)
from app.realtime.machine_responses import (
    advance,
    answer_turn,
    cancel_asked,
    end_active,
    follow_work,
    interrupt,
    nothing_said,
    response_asked,
)
from app.realtime.machine_state import LiveTurn, State

__all__ = ["State", "Step", "next_state"]

Step = tuple[State, list[Effect]]


def next_state(state: State, event: Event) -> Step:
    """What an event makes of a state.

    Returns:
        The state afterwards, and what has to be done, in order.
    """
    if state.closed and not isinstance(event, WorkJoined):
        return state, []
    after = advance(_follow(state, event))
    return replace(after, _effects=()), list(after._effects)


def _follow(state: State, event: Event) -> State:
    match event:
        case AudioAppended():
            return state.but(appended=state.appended + event.ticks)
        case SoundDropped():
            return _sound_dropped(state, event)
        case SpeechStarted() | SpeechStopped():
            return _follow_ear(state, event)
        case CommitAsked():
            return _commit_asked(state, event)
        case ClearAsked():
            return _restart_hearing(_end_turn(state), state.appended).but(TellCleared())
        case TextPending():
            return state.but(unheard=state.unheard | {event.item_id})
        case TextSettled():
            return state.but(unheard=state.unheard - {event.item_id})
        case NothingSaid():
            return nothing_said(state, event)
        case ResponseAsked():
            return response_asked(state, event)
        case CancelAsked():
            return cancel_asked(state, event)
        case WorkEnded() | WorkJoined():
            return follow_work(state, event)
        case RulesChanged():
            return _rules_changed(state, event.rules)
        case SilenceElapsed():
            return _silence_elapsed(state, event)
        case SessionClosed():
            return _close(state)


def _follow_ear(state: State, event: SpeechStarted | SpeechStopped) -> State:
    if event.hearing != state.hearing or not state.rules.detection:
        return state
    if isinstance(event, SpeechStarted):
        if state.turn is not None:
            return state
        start = max(event.start, state.taken)
        started = state.but(
            TellSpeechStarted(event.item_id, start),
            turn=LiveTurn(event.item_id, start),
            taken=start,
        )
        return interrupt(started) if state.rules.interrupt_response else started
    if state.turn is None:
        return state
    end = min(max(event.end, state.taken), state.appended)
    turn = state.turn
    stopped = state.but(
        TellSpeechStopped(turn.item_id, end),
        Commit(turn.item_id, turn.start, end),
        turn=None,
        taken=end,
        unheard=state.unheard | {turn.item_id},
    )
    return answer_turn(stopped, event.response_id)


def _sound_dropped(state: State, event: SoundDropped) -> State:
    if event.hearing != state.hearing or state.turn is not None:
        return state
    return state.but(taken=min(max(state.taken, event.before), state.appended))


def _commit_asked(state: State, event: CommitAsked) -> State:
    if state.appended == state.taken and state.turn is None:
        if state.rules.detection:
            # The ear has taken everything already; the client's commit came second.
            return state
        return state.but(
            Refuse(
                "Error committing input audio buffer: buffer too small. Expected at least 100ms "
                "of audio, but buffer only has 0.00ms of audio.",
                "input_audio_buffer_commit_empty",
                event.event_id,
            )
        )
    item_id = event.item_id if state.turn is None else state.turn.item_id
    start = state.taken if state.turn is None else state.turn.start
    committed = _end_turn(state).but(
        Commit(item_id, start, state.appended), unheard=state.unheard | {item_id}
    )
    return _restart_hearing(committed, state.appended)


def _end_turn(state: State) -> State:
    """Ends a live turn for the client's sake; its sound stays where it is."""
    if state.turn is None:
        return state
    return state.but(TellSpeechStopped(state.turn.item_id, state.appended), turn=None)


def _restart_hearing(state: State, start: int) -> State:
    hearing = state.hearing + 1
    return state.but(RestartHearing(hearing, start), hearing=hearing, taken=start)


def _rules_changed(state: State, rules: Rules) -> State:
    changed = state.but(rules=rules)
    if rules.detection == state.rules.detection:
        return changed
    # Sound that no turn has taken yet is left to whoever ends turns from now on.
    return _restart_hearing(_end_turn(changed), state.taken)


def _silence_elapsed(state: State, event: SilenceElapsed) -> State:
    if state.turn is not None or state.active is not None or not state.rules.detection:
        return state
    timed_out = state.but(TellTimeout(event.item_id, state.appended))
    return answer_turn(_restart_hearing(timed_out, state.appended), event.response_id)


def _close(state: State) -> State:
    closing = state.but(owed=None)
    if state.active is not None:
        closing = end_active(closing, Outcome.CANCELLED, Reason.CLIENT_CANCELLED)
    for response_id in sorted(state.beside):
        closing = closing.but(
            CloseResponse(response_id, Outcome.CANCELLED, Reason.CLIENT_CANCELLED),
            StopWork(response_id),
        )
    return _end_turn(closing).but(beside=frozenset(), closed=True)
