"""Sockets come and go; a session serves one at a time, and may outlive it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.realtime.inbox import SocketLost, SocketOpened, Timer
from app.realtime.items import Message
from app.realtime.outbox import Closing, Frame

if TYPE_CHECKING:
    from app.realtime.session import Session

TAKEN_OVER = 4001
"""The close code of a socket whose session another one serves now."""


def socket_opened(session: Session, opened: SocketOpened) -> None:
    """A socket serves the session from now on; an older one is closed and gets nothing more."""
    stage = session.stage
    old, stage.outbox = stage.outbox, opened.outbox
    session.timers.cancel(Timer.RESUME)
    if not opened.resumed:
        session.send_session("session.created")
        return
    missed = _missed(session, opened)
    unsent = old.drain()
    missed = unsent if missed is None else missed
    reason = "the session was taken over by another socket"
    old.close(Closing(TAKEN_OVER, reason, orderly=False))
    _go_on(session, missed)
    session.send_session("session.created")
    for frame in missed:
        stage.outbox.put_frame(frame)


def _missed(session: Session, opened: SocketOpened) -> list[Frame] | None:
    """What the client has not got, or not played; None if it does not say, or nobody knows."""
    journal = session.stage.journal
    if journal is None:
        return None
    if opened.after_event is not None:
        return journal.after(opened.after_event)
    return None if opened.played is None else journal.unheard(*opened.played)


def _go_on(session: Session, missed: list[Frame]) -> None:
    """Sets the clock of what is heard to what the client has got of the last answer."""
    stage = session.stage
    item_id = stage.playback.item
    item = None if item_id is None else stage.conversation.find(item_id)
    if isinstance(item, Message) and item.sound is not None:
        again = sum(frame.ticks for frame in missed if frame.item == item_id)
        stage.playback.go_on(item.sound.ticks - again)


def socket_lost(session: Session, lost: SocketLost) -> None:
    """A socket is gone: a session that can be resumed waits for its client, any other ends."""
    if lost.outbox is not session.stage.outbox:
        return  # another socket has taken the session over
    if session.resume_token is None or lost.left:
        if lost.slow:
            session.end_slow_client()
        else:
            session.close(1000, "the client left", orderly=False)
        return
    session.stage.outbox = session.new_outbox()
    seconds = session.services.settings.realtime_resume_seconds
    session.timers.set(Timer.RESUME, asyncio.get_running_loop().time() + seconds)
