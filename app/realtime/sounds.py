"""The sound that a client's events carry."""

from __future__ import annotations

import base64

from app.realtime.client_events import AudioAppend, ClientEvent, ItemCreate
from app.realtime.failure import EventError
from app.realtime.item_schema import InputAudio, MessageItem

INLINE_CHARACTERS = 64 << 10
"""Frames up to this length are read on the event loop; longer ones on a thread."""


def sounds_of(event: ClientEvent, most_bytes: int) -> tuple[bytes, ...]:
    """What an event appends, or the recordings in its item whose words the client does not say.

    Args:
        event: Any event; most carry no sound.
        most_bytes: The most of one sound.

    Raises:
        EventError: They are no base64, or too many.
    """
    match event:
        case AudioAppend():
            encoded = [event.audio]
        case ItemCreate(item=MessageItem(content=content)):
            encoded = [
                part.audio
                for part in content
                if isinstance(part, InputAudio) and part.audio and part.transcript is None
            ]
        case _:
            return ()
    try:
        return tuple(sound_of(audio, most_bytes) for audio in encoded)
    except EventError as refusal:
        refusal.event_id = event.event_id
        raise


def sound_of(audio: str, most_bytes: int) -> bytes:
    """The bytes of base64.

    Raises:
        EventError: It is none, or they are too many.
    """
    if len(audio) > most_bytes * 4 // 3 + 4:
        message = f"The audio is larger than the {most_bytes} bytes that one event may have."
        raise EventError(message, "audio_too_large", "audio")
    try:
        # Padding that is left out is harmless; any other damage would be heard as noise.
        return base64.b64decode(audio + "=" * (-len(audio) % 4), validate=True)
    except ValueError:
        message = "Invalid 'audio'. Expected base64-encoded audio bytes."
        raise EventError(message, "invalid_value", "audio") from None
