"""How pieces of audio become bytes of a streamed response body."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from app.audio.formats import AudioFormat
from app.audio.worker import to_base64
from app.errors import ApiError
from app.event_stream import server_sent_event
from app.speech.stream import Piece
from app.speech.usage import usage_of
from engine import WordTiming


class Framing(Protocol):
    """One way to put a stream of audio into a response body."""

    @property
    def media_type(self) -> str:
        """The Content-Type."""
        ...

    def piece(self, piece: Piece) -> bytes:
        """The bytes of one piece; may be empty."""
        ...

    def end(self, seconds: float) -> bytes:
        """What follows the last piece of a stream that ended well."""
        ...

    def failure(self, error: ApiError) -> bytes | None:
        """What tells the client of a failure; None if the body has no words for it."""
        ...


class AudioFraming:
    """Bare bytes of the audio format."""

    def __init__(self, audio_format: AudioFormat) -> None:
        """The format gives the Content-Type."""
        self.media_type = audio_format.media_type

    def piece(self, piece: Piece) -> bytes:
        """The encoded bytes themselves."""
        return piece.data

    def end(self, seconds: float) -> bytes:
        """Nothing: the audio format has its own end."""
        return b""

    def failure(self, error: ApiError) -> bytes | None:
        """None: any byte would be taken for audio."""
        return None


class EventFraming:
    """Server-sent events with base64 audio, as OpenAI sends them, and the times of words."""

    media_type = "text/event-stream"

    def __init__(self, characters: int, *, with_words: bool) -> None:
        """`characters` is the length of the input text, for the usage."""
        self._characters = characters
        self._with_words = with_words

    def piece(self, piece: Piece) -> bytes:
        """The events of the piece's words, then its audio."""
        events = word_events(piece.words) if self._with_words else []
        if piece.data:
            events.append({"type": "speech.audio.delta", "audio": to_base64(piece.data)})
        return "".join(map(server_sent_event, events)).encode()

    def end(self, seconds: float) -> bytes:
        """The event that says all is well, with the usage."""
        usage = usage_of(self._characters, seconds)
        return server_sent_event({"type": "speech.audio.done", "usage": usage}).encode()

    def failure(self, error: ApiError) -> bytes | None:
        """An event of the shape that OpenAI's clients raise an error for."""
        event = {"type": "error", "error": error.as_dict()}
        return server_sent_event(event, name="error").encode()


def word_events(words: Iterable[WordTiming]) -> list[dict[str, Any]]:
    """One `speech.word` event a word; times are in seconds from the first sample."""
    return [{"type": "speech.word", **word_fields(word)} for word in words]


def word_fields(word: WordTiming) -> dict[str, Any]:
    """What clients are told about one word."""
    return {
        "word": word.text,
        "start": round(word.start, 4),
        "end": round(word.end, 4),
        "start_character": word.start_character,
        "end_character": word.end_character,
    }
