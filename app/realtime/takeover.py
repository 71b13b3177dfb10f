"""Sockets come and go; a session serves one at a time, and may outlive it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.realtime.inbox import SocketLost, SocketOpened, Timer
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
    reason = "the session was taken over by another socket"
    old.close(Closing(TAKEN_OVER, reason, orderly=False))
    missed = _missed(session, opened)
    stage.playback.stop()
    session.send_session("session.created")
    for frame in missed:
        stage.outbox.put_frame(frame)


def _missed(session: Session, opened: SocketOpened) -> list[Frame]:
    """What the client has not got, or not played."""
    journal = session.stage.journal
    if journal is None:
        return []
    if opened.after_event is not None:
        return journal.after(opened.after_event) or []
    return [] if opened.played is None else journal.unheard(*opened.played)


def socket_lost(session: Session, lost: SocketLost) -> None:
    """A socket is gone: a session that can be resumed waits for its client, any other ends."""
    if lost.outbox is not session.stage.outbox:
        return  # another socket has taken the session over
    if session.resume_token is None or lost.left:
        session.close(1000, "the client left", orderly=False)
        return
    session.stage.outbox = session.new_outbox()
    seconds = session.services.settings.realtime_resume_seconds
    session.timers.set(Timer.RESUME, asyncio.get_running_loop().time() + seconds)
