"""An engine that answers by rote: the engine's interface for conversations, without models."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry

from engine import (
    AbortReason,
    AudioContent,
    AudioPayload,
    Chat,
    Chunk,
    EngineHealth,
    ErrorCode,
    OmniRequest,
    PipelineDescription,
    StageError,
    StageStatus,
    TextPayload,
    TextReport,
    ToolCallPayload,
    UsagePayload,
    VoiceDescription,
    WordTiming,
)

RATE = 24_000
WORD_SECONDS = 0.2

DESCRIPTION = PipelineDescription(
    name="rote",
    models=("rote",),
    voices=(
        VoiceDescription("low", "A low hum.", "en", ("alloy", "ash", "marin")),
        VoiceDescription("high", "A high hum.", "en", ("nova", "verse")),
    ),
    sample_rate=RATE,
    word_timings=True,
    routes=("speech", "chat", "chat_text"),
)


@dataclass
class RoteEngine:
    """Repeats the user's last words after `You said:`.

    A last message with `FAIL` fails in the middle, one with `LONG` is answered by fifty words, and
    with tools that must be called the first one is.
    """

    pace: float = 0.0
    """Seconds that a word takes to be made."""
    description: PipelineDescription = DESCRIPTION
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    requests: list[OmniRequest] = field(default_factory=list)
    heard: list[AudioContent] = field(default_factory=list)
    """Beginnings of sounds."""
    live: set[str] = field(default_factory=set)
    most_live: int = 0
    words_made: int = 0
    aborted: list[str] = field(default_factory=list)
    ended_for: dict[str, AbortReason] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    """By session."""
    replaced: int = 0

    @classmethod
    async def start(cls, _progress: Callable[[str], None]) -> RoteEngine:
        return cls()

    def inspect(self, text: str) -> TextReport:
        return TextReport(bool(text))

    def health(self) -> EngineHealth:
        return EngineHealth(True, {"rote": StageStatus.READY}, len(self.live), 0)

    async def hear(self, sound: AudioContent) -> None:
        self.heard.append(sound)
        await asyncio.sleep(self.pace)

    async def abort(self, request_id: str, reason: AbortReason = AbortReason.ASKED) -> None:
        self.live.discard(request_id)
        self.ended_for[request_id] = reason

    async def end_session(self, session: str) -> None:
        pass

    async def close(self, *, free: bool = True) -> None:
        pass

    async def replace(self, request: OmniRequest) -> AsyncGenerator[Chunk[Any]]:
        assert request.session is not None
        self.replaced += 1
        older = self.newest.get(request.session)
        self.newest[request.session] = request.request_id
        if older is not None:
            self.ended_for.setdefault(older, AbortReason.REPLACED)
        of_session = {r.request_id for r in self.requests if r.session == request.session}
        while of_session & self.live:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        if request.request_id in self.ended_for:
            unmade: Chunk[Any] = Chunk(request.request_id, 0, "", 0, None)
            yield _ended(unmade, self.ended_for[request.request_id])
            return
        async with contextlib.aclosing(self.generate(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def generate(self, request: OmniRequest) -> AsyncGenerator[Chunk[Any]]:
        self.requests.append(request)
        self.live.add(request.request_id)
        self.most_live = max(self.most_live, len(self.live))
        finished = False
        try:
            async for chunk in self._answer(request):
                if request.request_id in self.ended_for:
                    yield _ended(chunk, self.ended_for[request.request_id])
                    return
                yield chunk
            finished = True
        finally:
            if not finished:
                await asyncio.sleep(0.02)  # an abort takes a step
                self.aborted.append(request.request_id)
            self.live.discard(request.request_id)

    async def _answer(self, request: OmniRequest) -> AsyncGenerator[Chunk[Any]]:
        assert request.chat is not None
        counts = {"thinker": 0, "code2wav": 0}

        def chunk(stage: str, payload: Any, *, final: bool = False) -> Chunk[Any]:
            counts[stage] += 1
            return Chunk(request.request_id, 0, stage, counts[stage] - 1, payload, final)

        called = _called(request.chat)
        words = [] if called else _words(request.chat)
        if called:
            yield chunk("thinker", ToolCallPayload("call_rote", called, '{"place": "Paris"}'))
        spoken, text = request.route == "chat", ""
        for number, word in enumerate(words):
            if word == "FAIL":
                error = StageError(ErrorCode.STAGE_FAILED, "The stage fell over.", stage="thinker")
                yield Chunk(request.request_id, 0, "thinker", counts["thinker"], None, True, error)
                return
            await asyncio.sleep(self.pace)
            self.words_made += 1
            delta = word if number == 0 else f" {word}"
            start = len(text) + len(delta) - len(word)
            text += delta
            yield chunk("thinker", TextPayload(delta))
            if spoken:
                timing = WordTiming(
                    word,
                    start,
                    len(text),
                    number * WORD_SECONDS,
                    (number + 1) * WORD_SECONDS,
                )
                yield chunk("code2wav", _sound(request, number, timing))
        most = request.chat.max_tokens
        usage = UsagePayload(
            sum(len(m.text) for m in request.chat.messages),
            0,
            len(words),
            most is not None and len(words) >= most,
        )
        yield chunk("thinker", usage, final=True)
        if spoken:
            yield chunk("code2wav", None, final=True)


def _called(chat: Chat) -> str | None:
    last = chat.messages[-1].role if chat.messages else None
    if not chat.tools or last == "tool" or chat.tool_choice in ("none", "auto"):
        return None
    return chat.tools[0].name if chat.tool_choice == "required" else chat.tool_choice


def _words(chat: Chat) -> list[str]:
    said = [m.text for m in chat.messages if m.role in ("user", "tool")]
    last = said[-1] if said else "nothing"
    words = ["You", "said:", *last.split()]
    if "LONG" in last:
        words = ["word"] * 50
    return words if chat.max_tokens is None else words[: chat.max_tokens]


def _sound(request: OmniRequest, number: int, timing: WordTiming) -> AudioPayload:
    count = int(WORD_SECONDS * RATE / request.parameters.speed)
    time = (np.arange(count) + number * count) / RATE
    pitch = 150.0 if request.parameters.voice == "low" else 300.0
    samples = (0.3 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)
    return AudioPayload(samples, RATE, (timing,))


def _ended(chunk: Chunk[Any], reason: AbortReason) -> Chunk[Any]:
    error = StageError(reason.code, "It was ended.")
    return dataclasses.replace(chunk, payload=None, final=True, error=error)
