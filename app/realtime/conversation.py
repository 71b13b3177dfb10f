"""The conversation: items in their order."""

from __future__ import annotations

from app.audio.wire_formats import TICKS_PER_MILLISECOND
from app.realtime.failure import EventError
from app.realtime.items import Item, ItemStatus, Message, PartKind

ROOT = "root"
"""The `previous_item_id` of an item that goes before all others."""


class Conversation:
    """The items of one conversation, in their order."""

    def __init__(self, identifier: str, most_items: int) -> None:
        """Makes an empty conversation that takes at most `most_items` items."""
        self.id = identifier
        self._most_items = most_items
        self._items: list[Item] = []

    @property
    def items(self) -> list[Item]:
        """The items, the oldest first."""
        return list(self._items)

    @property
    def has_sound(self) -> bool:
        """Whether an answer in it can be heard, so that its voice is fixed."""
        return any(
            isinstance(item, Message) and item.sound is not None and item.sound.ticks > 0
            for item in self._items
        )

    @property
    def unheard_turn(self) -> str | None:
        """The last item, if it is a turn whose words are not known yet."""
        last = self._items[-1] if self._items else None
        if not isinstance(last, Message) or last.role != "user":
            return None
        return last.id if _unheard(last) else None

    def says_nothing_new(self, turn: str) -> bool:
        """Whether a turn held no words, and nothing before it waits for an answer."""
        item = self.find(turn)
        if not isinstance(item, Message) or item.text:
            return False
        if item.sounds and _unheard(item):
            return False  # a Thinker that hears need not wait for the words
        before = self._items[: self._items.index(item)]
        if not before:
            return True
        last = before[-1]
        answered = isinstance(last, Message) and last.role == "assistant"
        return answered and last.status is ItemStatus.COMPLETED

    def find(self, item_id: str) -> Item | None:
        """The item, if there is one of that name."""
        return next((item for item in self._items if item.id == item_id), None)

    def previous_of(self, item_id: str) -> str | None:
        """The item before another one."""
        position = next(n for n, item in enumerate(self._items) if item.id == item_id)
        return self._items[position - 1].id if position else None

    def add(self, item: Item, previous_item_id: str | None = None) -> str | None:
        """Adds an item.

        Args:
            item: The item.
            previous_item_id: Which one it follows; None: the last, `root`: none.

        Returns:
            The item that it follows now; None for the first.

        Raises:
            EventError: It cannot go there, or its name is taken.
        """
        if self.find(item.id) is not None:
            message = f"Error adding item: an item with id {item.id!r} already exists."
            raise EventError(message, "item_create_duplicate_item_id", "item.id")
        if len(self._items) >= self._most_items:
            message = f"A conversation has at most {self._most_items} items; delete some first."
            raise EventError(message, "conversation_too_long", "item")
        self._items.insert(self._position_after(previous_item_id), item)
        return self.previous_of(item.id)

    def append(self, item: Item) -> str | None:
        """Adds an item of the server's own at the end, whatever the limit is.

        Returns:
            The item that it follows now; None for the first.
        """
        self._items.append(item)
        return self.previous_of(item.id)

    def _position_after(self, previous_item_id: str | None) -> int:
        if previous_item_id is None:
            return len(self._items)
        if previous_item_id == ROOT:
            return 0
        for position, item in enumerate(self._items):
            if item.id == previous_item_id:
                return position + 1
        raise EventError(
            f"Error adding item: the previous item with id '{previous_item_id}' does not exist.",
            "item_create_invalid_previous_item_id",
            "previous_item_id",
        )

    def retrieve(self, item_id: str) -> Item:
        """The item.

        Raises:
            EventError: There is none of that name.
        """
        item = self.find(item_id)
        if item is None:
            message = f"Error retrieving item: the item with id '{item_id}' does not exist."
            raise EventError(message, "item_retrieve_invalid_item_id", "item_id")
        return item

    def delete(self, item_id: str) -> None:
        """Removes an item.

        Raises:
            EventError: There is none of that name.
        """
        item = self.find(item_id)
        if item is None:
            message = f"Error deleting item: the item with id '{item_id}' does not exist."
            raise EventError(message, "item_delete_invalid_item_id", "item_id")
        self._items.remove(item)

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        """Forgets what was not heard of an answer.

        A point behind the answer's end is not refused but means its end: clients measure playback
        less exactly than the server measures sound, and fall silent on an error.

        Raises:
            EventError: There is no such answer.
        """
        item = self.find(item_id)
        if item is None:
            message = f"Item with item_id not found: {item_id}"
            raise EventError(message, "item_truncate_invalid_item_id", "item_id")
        if not isinstance(item, Message) or item.sound is None:
            message = "Only model output audio messages can be truncated"
            raise EventError(message, "unsupported_content_type", "item_id")
        item.sound.end = audio_end_ms * TICKS_PER_MILLISECOND


def _unheard(message: Message) -> bool:
    """Whether words of a message are not known yet, or never will be."""
    return any(part.kind is PartKind.INPUT_AUDIO and part.text is None for part in message.parts)
