"""An engine that hums: the engine's interface without models, for tests of what clients see."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import numpy as np
from prometheus_client import CollectorRegistry

from engine import (
    AbortReason,
    AudioContent,
    AudioPayload,
    Chunk,
    EngineHealth,
    EngineOverloadedError,
    ErrorCode,
    InvalidRequestError,
    OmniRequest,
    PipelineDescription,
    StageError,
    StageStatus,
    StageTimes,
    TextInput,
    TextReport,
    VoiceDescription,
    WordTiming,
)

RATE = 24_000
WORD_SAMPLES = 4800
"""Each word is hummed for 200 ms."""

DESCRIPTION = PipelineDescription(
    name="hum",
    models=("hum", "hum-1"),
    voices=(
        VoiceDescription("low", "A low hum.", "en", ("alloy", "ash", "marin")),
        VoiceDescription("high", "A high hum.", "en", ("nova",)),
    ),
    sample_rate=RATE,
    word_timings=True,
)


@dataclass
class HummingEngine:
    """Hums each word of the input. Certain words make it misbehave.

    `FAIL` as a word fails the request there and `SILENCE` makes no sound. `INVALID`, `BUSY` and
    `BROKEN` make it refuse, be overloaded and raise.
    """

    pace: float = 0.0
    """Seconds that a word takes to be made."""
    description: PipelineDescription = DESCRIPTION
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    live: set[str] = field(default_factory=set)
    made: int = 0
    """Words made for all requests."""
    requests: list[OmniRequest] = field(default_factory=list)
    closed: bool = False
    healthy: bool = True
    aborted: list[tuple[str, AbortReason]] = field(default_factory=list)

    @classmethod
    async def start(cls, _progress: Callable[[str], None]) -> HummingEngine:
        return cls()

    def inspect(self, text: str) -> TextReport:
        left_out = tuple(dict.fromkeys(c for c in text if ord(c) > 0x2FFF))
        speakable = any(c.isalnum() and ord(c) <= 0x2FFF for c in text)
        return TextReport(speakable, left_out)

    def health(self) -> EngineHealth:
        status = StageStatus.READY if self.healthy else StageStatus.FAILED
        return EngineHealth(self.healthy, {"hum": status}, len(self.live), 0)

    async def hear(self, sound: AudioContent) -> None:
        raise AssertionError("This pipeline does not hear.")

    async def abort(self, request_id: str, reason: AbortReason = AbortReason.ASKED) -> None:
        self.live.discard(request_id)
        self.aborted.append((request_id, reason))

    async def end_session(self, session: str) -> None:
        pass

    async def close(self, *, free: bool = True) -> None:
        self.closed = True

    async def generate(self, request: OmniRequest) -> AsyncGenerator[Chunk[AudioPayload]]:
        self.requests.append(request)
        self.live.add(request.request_id)
        times = request.times
        times.arrived = times.admitted = times.opened = time.monotonic()
        stage = times.stages["hum"] = StageTimes()
        stage.offer(times.opened)
        began = times.opened
        try:
            async for chunk in self._hum(request):
                now = time.monotonic()
                stage.step(began, now)
                if chunk.payload is not None:
                    stage.first_output = stage.first_output or now
                    times.first_audio = times.first_audio or now
                    times.audio_seconds += chunk.payload.seconds
                if chunk.final:
                    stage.end(now)
                    times.ended = now
                    times.error = None if chunk.error is None else chunk.error.code
                yield chunk
                began = time.monotonic()
        finally:
            self.live.discard(request.request_id)

    def replace(self, request: OmniRequest) -> AsyncGenerator[Chunk[AudioPayload]]:
        return self.generate(request)

    async def _hum(self, request: OmniRequest) -> AsyncGenerator[Chunk[AudioPayload]]:
        seq = 0
        async for text, start in _words(request.text):
            if text == "INVALID":
                raise InvalidRequestError("input", "This text is invalid.")
            if text == "BUSY":
                raise EngineOverloadedError("The waiting line is full.", retry_after=2.5)
            if text == "BROKEN":
                raise ZeroDivisionError("a mistake of the engine")
            if text == "SILENCE":
                continue
            if text == "FAIL":
                error = StageError(ErrorCode.STAGE_FAILED, "The stage fell over.", stage="hum")
                yield Chunk(request.request_id, 0, "hum", seq, None, True, error)
                return
            await asyncio.sleep(self.pace)
            self.made += 1
            yield Chunk(request.request_id, 0, "hum", seq, _hummed(request, text, start, seq))
            seq += 1
        yield Chunk(request.request_id, 0, "hum", seq, None, True)


def _hummed(request: OmniRequest, text: str, start: int, index: int) -> AudioPayload:
    pitch = 150.0 if request.parameters.voice == "low" else 300.0
    at = (np.arange(WORD_SAMPLES) + index * WORD_SAMPLES) / RATE
    samples = (0.5 * np.sin(2 * np.pi * pitch * at)).astype(np.float32)
    seconds = WORD_SAMPLES / RATE
    word = WordTiming(text, start, start + len(text), index * seconds, (index + 1) * seconds)
    return AudioPayload(samples, RATE, (word,))


async def _words(text_input: TextInput) -> AsyncGenerator[tuple[str, int]]:
    """Each word as soon as something after it shows that it is complete."""
    changed = asyncio.Event()
    text_input.listen(changed.set)
    text, spoken = "", 0
    while True:
        changed.clear()
        pieces, closed = text_input.take()
        flush = closed
        for piece in pieces:
            text += piece.text
            flush = flush or piece.flush
        for match in re.finditer(r"\w+", text[spoken:]):
            if spoken + match.end() == len(text) and not flush:
                break
            yield match[0], spoken + match.start()
        else:
            match = None
        spoken = spoken + match.start() if match else len(text)
        if closed:
            return
        await changed.wait()
