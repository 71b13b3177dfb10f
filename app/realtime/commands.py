"""Follows the events of a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.audio.wire_formats import TICKS_PER_SECOND
from app.errors import ApiError
from app.identifiers import new_identifier
from app.pictures import check_together
from app.realtime.client_events import (
    AudioAppend,
    AudioClear,
    AudioCommit,
    ItemCreate,
    ItemDelete,
    ItemRetrieve,
    ItemTruncate,
    OutputClear,
    ResponseCancel,
    ResponseCreate,
    ResponseOptions,
    SessionUpdate,
)
from app.realtime.failure import EventError
from app.realtime.inbox import ClientSaid
from app.realtime.item_schema import (
    ItemReference,
)
from app.realtime.items import Item, Message, PartKind, item_from
from app.realtime.machine_events import (
    AudioAppended,
    CancelAsked,
    ClearAsked,
    CommitAsked,
    ResponseAsked,
    Rules,
    RulesChanged,
    TextPending,
)
from app.realtime.pictures import Pictures
from app.realtime.plan import ResponsePlan, configured
from app.realtime.session_config import SessionConfig
from app.speech.command import resolve_voice

if TYPE_CHECKING:
    from app.realtime.session import Session


def follow(session: Session, said: ClientSaid) -> None:
    """Does what an event asks for.

    Raises:
        EventError: It cannot be done.
    """
    event = said.event
    match event:
        case AudioAppend():
            _append(session, *said.sounds)
        case AudioCommit():
            session.step(CommitAsked(new_identifier("item"), event.event_id))
        case AudioClear():
            session.step(ClearAsked())
        case SessionUpdate():
            _update(session, event)
        case ResponseCreate():
            _create_response(session, event, said.pictures)
        case ResponseCancel():
            session.step(CancelAsked(event.response_id, event.event_id))
        case _:
            _follow_item_event(session, said)


def _follow_item_event(session: Session, said: ClientSaid) -> None:
    conversation = session.stage.conversation
    event = said.event
    match event:
        case ItemCreate():
            _create_item(session, event, said)
        case ItemRetrieve():
            item = conversation.retrieve(event.item_id)
            session.send("conversation.item.retrieved", item=item.as_wire())
        case ItemTruncate():
            conversation.truncate(event.item_id, event.audio_end_ms)
            session.send(
                "conversation.item.truncated",
                item_id=event.item_id,
                content_index=event.content_index,
                audio_end_ms=event.audio_end_ms,
            )
        case ItemDelete():
            conversation.delete(event.item_id)
            session.send("conversation.item.deleted", item_id=event.item_id)
        case OutputClear():
            raise EventError(
                "output_audio_buffer.clear is for transports on which the server plays; on a "
                "WebSocket the client plays, so cancel the response instead.",
                "invalid_value",
                "type",
            )


def _append(session: Session, sound: bytes) -> None:
    settings = session.services.settings
    audio_format = session.config.input_format
    waiting = session.state.appended - session.state.taken
    ticks = audio_format.ticks(len(sound))
    if waiting + ticks > settings.realtime_buffer_seconds * TICKS_PER_SECOND:
        raise EventError(
            f"The input audio buffer holds {settings.realtime_buffer_seconds:g} s already; commit "
            "or clear it.",
            "input_audio_buffer_full",
            "audio",
        )
    # The user may take the answer's own sound for speech as long as it is being heard.
    session.hearing.append(sound, audio_format, guarded=session.answer_is_heard)
    session.step(AudioAppended(session.count_ticks(sound)))


def _update(session: Session, event: SessionUpdate) -> None:
    voice_is_fixed = session.stage.conversation.has_sound
    config = session.config.updated(event.session, voice_is_fixed=voice_is_fixed)
    _check_voice(session, config, "session.audio.output.voice")
    if config.input_format is not session.config.input_format:
        session.drop_half_sample()
    session.config = config
    session.hearing.configure(config)
    rules = rules_of(config)
    if rules != session.state.rules:
        session.step(RulesChanged(rules))
    session.send_session("session.updated")


def rules_of(config: SessionConfig) -> Rules:
    """How turns are taken under a session's settings."""
    detection = config.detection
    if detection is None:
        return Rules(detection=False)
    answered = detection.create_response and config.kind == "realtime"
    return Rules(True, answered, detection.interrupt_response)


def _check_voice(session: Session, config: SessionConfig, param: str) -> None:
    try:
        resolve_voice(config.voice, session.services.engine.description)
    except ApiError as refusal:
        raise EventError(refusal.message, "invalid_value", param) from None


def _create_item(session: Session, event: ItemCreate, said: ClientSaid) -> None:
    if said.sounds:
        session.hearing.check()
    item = item_from(event.item, said.pictures)
    _check_pictures([*session.stage.conversation.items, item], "item.content")
    previous = session.stage.conversation.add(item, event.previous_item_id)
    for kind in ("conversation.item.added", "conversation.item.done"):
        session.send(kind, previous_item_id=previous, item=item.as_wire())
    for sound in said.sounds:
        session.step(TextPending(item.id))
        session.hearing.recognize(item.id, sound, session.config.input_format)


def _check_pictures(items: Sequence[Item], param: str) -> None:
    seen = (one for item in items if isinstance(item, Message) for one in item.pictures)
    try:
        check_together(seen, param)
    except ApiError as refusal:
        raise EventError(refusal.message, "invalid_value", param) from None


def _create_response(session: Session, event: ResponseCreate, pictures: Pictures) -> None:
    if session.config.kind == "transcription":
        message = "A transcription session makes no responses."
        raise EventError(message, "invalid_value", "type")
    options = event.response
    config = configured(session.config, options)
    _check_voice(session, config, "response.audio.output.voice")
    in_conversation = options.conversation == "auto"
    plan = ResponsePlan(
        new_identifier("resp"),
        config,
        session.stage.conversation.id if in_conversation else None,
        metadata=options.metadata,
        items=_own_input(session, options, pictures),
    )
    session.plans[plan.response_id] = plan
    session.step(ResponseAsked(plan.response_id, in_conversation, event.event_id))
    session.plans.pop(plan.response_id, None)


def _own_input(
    session: Session, options: ResponseOptions, pictures: Pictures
) -> tuple[Item, ...] | None:
    if options.input is None:
        return None
    items: list[Item] = []
    for position, wire in enumerate(options.input):
        if isinstance(wire, ItemReference):
            items.append(_referred(session, wire, position))
            continue
        item = item_from(wire, pictures)
        known = session.stage.conversation.find(item.id)
        items.append(item if known is None else _with_words(item, known))
    _check_pictures(items, "response.input")
    return tuple(items)


def _referred(session: Session, wire: ItemReference, position: int) -> Item:
    item = session.stage.conversation.find(wire.id)
    if item is None:
        message = f"Error in response input: the item with id '{wire.id}' does not exist."
        raise EventError(message, "item_not_found", f"response.input[{position}].id")
    return item


def _with_words(item: Item, known: Item) -> Item:
    """A client's copy of an item, with the words that only the server knows."""
    if not isinstance(item, Message) or not isinstance(known, Message):
        return item
    spoken = [part.text for part in known.parts if part.kind is PartKind.INPUT_AUDIO]
    parts = [
        replace(part, text=spoken[0])
        if part.kind is PartKind.INPUT_AUDIO and part.text is None and spoken
        else part
        for part in item.parts
    ]
    return replace(item, parts=parts)
