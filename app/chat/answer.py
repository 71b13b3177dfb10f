"""An answer as the engine makes it, and as clients get it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from app.audio.worker import StreamEncoder, to_base64
from app.engine_port import SpeechEngine
from app.errors import from_stage_error
from app.identifiers import new_identifier
from app.metrics import Outcome
from app.speech.usage import audio_tokens
from app.timeline import RequestRecord
from engine import (
    AudioPayload,
    EngineError,
    OmniRequest,
    TextPayload,
    ToolCallPayload,
    UsagePayload,
)

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Sound:
    """Encoded bytes that follow those before, of so many seconds."""

    data: bytes
    seconds: float = 0.0


Piece = TextPayload | ToolCallPayload | Sound


@dataclass(slots=True)
class Answer:
    """What is known of an answer so far.

    Attributes:
        model: What the client called the model.
        spoken: Whether it is heard.
        text: Its words.
        sound: Its encoded sound; only filled for answers in one piece.
        calls: Calls of the client's functions.
        seconds: How long its sound lasts.
        usage: What the Thinker counted.
        outcome: How it ended.
    """

    model: str
    spoken: bool
    text: str = ""
    sound: bytearray = field(default_factory=bytearray)
    calls: list[ToolCallPayload] = field(default_factory=list)
    seconds: float = 0.0
    usage: UsagePayload | None = None
    outcome: Outcome = Outcome.DISCONNECTED
    id: str = field(default_factory=lambda: new_identifier("chatcmpl"))
    audio_id: str = field(default_factory=lambda: new_identifier("audio"))
    created: int = field(default_factory=lambda: int(time.time()))

    async def pieces(
        self,
        engine: SpeechEngine,
        request: OmniRequest,
        encoder: StreamEncoder | None,
        record: RequestRecord,
    ) -> AsyncGenerator[Piece]:
        """Yields what the engine makes, in order; closing the generator aborts the request.

        Args:
            engine: Who answers.
            request: What is asked.
            encoder: What makes bytes of the sound; None where there is none.
            record: Where the time that takes is noted.

        Raises:
            ApiError: The engine failed.
            EngineError: The engine refused.
        """
        try:
            async with aclosing(engine.generate(request)) as chunks:
                async for chunk in chunks:
                    if chunk.error is not None:
                        self.outcome = Outcome.of_error(chunk.error.code)
                        raise from_stage_error(chunk.error)
                    payload: Any = chunk.payload
                    with record.encoding():
                        piece = await self._piece(payload, encoder)
                    if piece is not None:
                        yield piece
            if encoder is not None and (rest := await encoder.finish()):
                yield Sound(rest)
            self.outcome = Outcome.COMPLETED
        except EngineError as refusal:
            self.outcome = Outcome.of_error(refusal.error.code)
            raise
        finally:
            if encoder is not None:
                encoder.discard()

    async def _piece(self, payload: Any, encoder: StreamEncoder | None) -> Piece | None:
        match payload:
            case TextPayload():
                self.text += payload.text
                return payload if payload.text else None
            case ToolCallPayload():
                self.calls.append(payload)
                return payload
            case UsagePayload():
                self.usage = payload
            case AudioPayload() if encoder is not None:
                self.seconds += payload.seconds
                data = await encoder.encode(payload.samples)
                return Sound(data, payload.seconds) if data else None
        return None

    @property
    def finish_reason(self) -> str:
        """Why the answer ended."""
        if self.calls:
            return "tool_calls"
        return "length" if self.usage is not None and self.usage.truncated else "stop"

    def as_completion(self) -> dict[str, Any]:
        """The answer in one piece."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "refusal": None}
        if self.calls:
            message["tool_calls"] = [_call(call) for call in self.calls]
        if self.spoken and self.sound:
            message["content"] = None
            message["audio"] = {
                "id": self.audio_id,
                "data": to_base64(bytes(self.sound)),
                "expires_at": self.created + _HOUR,
                "transcript": self.text,
            }
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self.finish_reason,
            "logprobs": None,
        }
        return {**self._head("chat.completion"), "choices": [choice], "usage": self.counted()}

    def as_chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        """A part of a streamed answer."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}

    def as_usage_chunk(self) -> dict[str, Any]:
        """The last part of a streamed answer, if the client wants to have it counted."""
        head = self._head("chat.completion.chunk")
        return {**head, "choices": [], "usage": self.counted()}

    def delta(self, piece: Piece) -> dict[str, Any]:
        """A piece as the change that it makes to the message."""
        match piece:
            case ToolCallPayload():
                return {"tool_calls": [{"index": len(self.calls) - 1, **_call(piece)}]}
            case Sound():
                return {"audio": {"id": self.audio_id, "data": to_base64(piece.data)}}
            case TextPayload() if self.spoken:
                return {"audio": {"id": self.audio_id, "transcript": piece.text}}
            case TextPayload():
                return {"content": piece.text}

    def counted(self) -> dict[str, Any]:
        """The `usage`."""
        usage = self.usage or UsagePayload(0, 0, 0, False)
        audio = audio_tokens(self.seconds)
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens + audio,
            "total_tokens": usage.input_tokens + usage.output_tokens + audio,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {
                "audio_tokens": audio,
                "text_tokens": usage.output_tokens,
            },
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def _call(call: ToolCallPayload) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}
