"""What the parts of a session work on: its conversation, and the way to its client."""

from __future__ import annotations

from app.audio.wire_formats import TICKS_PER_SECOND
from app.realtime.conversation import Conversation
from app.realtime.items import Message
from app.realtime.journal import Journal
from app.realtime.outbox import Outbox
from app.realtime.output import ServerEvent
from app.realtime.playback import Playback
from app.timeline import TraceContext


class Stage:
    """A session's conversation, and the way to its client; the actor alone changes it.

    Attributes:
        session_id: The session.
        conversation: What was said.
        playback: How much of the last answer was heard.
        outbox: What waits for the socket that serves the session now.
        journal: What was sent, for a client that comes back; None where it cannot.
        trace: The trace that its client says it belongs to.
    """

    def __init__(
        self, session_id: str, conversation: Conversation, playback: Playback, outbox: Outbox
    ) -> None:
        """Begins without a journal."""
        self.session_id = session_id
        self.conversation = conversation
        self.playback = playback
        self.outbox = outbox
        self.journal: Journal | None = None
        self.trace = TraceContext()

    def send(self, *events: ServerEvent) -> None:
        """Puts events where the socket takes them from."""
        for event in events:
            frame = self.outbox.put(event)
            if self.journal is not None:
                self.journal.note(frame)

    def stop_sound(self) -> float:
        """The client stops hearing the last answer: what waits of it is dropped, the rest noted.

        Returns:
            How much sound was dropped, in seconds.
        """
        item_id = self.playback.item
        playing = self.playback.going_on
        heard = 0 if item_id is None else self.playback.heard(item_id)
        self.playback.stop()
        item = None if item_id is None else self.conversation.find(item_id)
        if item_id is None or not isinstance(item, Message) or item.sound is None:
            return 0.0
        dropped = self.drop_sound(item_id)
        item.sound.ticks -= dropped
        if (playing or dropped) and item.sound.end is None:
            item.sound.end = min(heard, item.sound.ticks)
        return dropped / TICKS_PER_SECOND

    def drop_sound(self, item_id: str) -> int:
        """Drops an answer's sound that was not sent yet.

        Returns:
            How much that was, in ticks.
        """
        if self.journal is not None:
            self.journal.forget_sound(item_id)
        return self.outbox.purge(item_id)
