"""Pipecat's own realtime service in a pipeline, against a running server.

Usage: pipecat_conversation.py WEBSOCKET_URL SPEECH_FILE INTERRUPTION_FILE

The files hold bare 16-bit samples at 24 kHz. Prints one JSON object that says what happened.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMRunFrame,
    ProposedUserStartedSpeakingFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime.events import (
    AudioConfiguration,
    AudioInput,
    InputAudioTranscription,
    SessionProperties,
)
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

PIECE = 960
PATIENCE = 120.0


class Watcher(BaseObserver):
    """Counts what the service lets out."""

    def __init__(self) -> None:
        super().__init__()
        self.sound = 0
        self.text = ""
        self.heard: list[str] = []
        self.turns = 0
        self.errors: list[str] = []
        self.last_sound = 0.0
        self._seen: set[int] = set()

    async def on_push_frame(self, data: FramePushed) -> None:
        frame: Frame = data.frame
        if frame.id in self._seen:
            return
        self._seen.add(frame.id)
        if isinstance(frame, TTSAudioRawFrame):
            self.sound += len(frame.audio)
            self.last_sound = time.monotonic()
        elif isinstance(frame, TTSTextFrame):
            self.text += frame.text
        elif isinstance(frame, TranscriptionFrame):
            self.heard.append(frame.text)
        elif isinstance(frame, ProposedUserStartedSpeakingFrame):
            self.turns += 1
        elif isinstance(frame, ErrorFrame):
            self.errors.append(str(frame.error))


async def until(condition: Any) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return bool(condition())


async def speak(worker: PipelineWorker, sound: bytes) -> None:
    for at in range(0, len(sound), PIECE * 2):
        piece = sound[at : at + PIECE * 2]
        await worker.queue_frame(InputAudioRawFrame(piece, sample_rate=24_000, num_channels=1))
        await asyncio.sleep(0.04)


def service_of(url: str, **audio_input: Any) -> OpenAIRealtimeLLMService:
    properties = SessionProperties(
        instructions="Answer in one short sentence.",
        audio=AudioConfiguration(
            input=AudioInput(transcription=InputAudioTranscription(), **audio_input)
        ),
    )
    return OpenAIRealtimeLLMService(
        api_key="none",
        base_url=url,
        settings=OpenAIRealtimeLLMService.Settings(
            model="gpt-realtime", session_properties=properties
        ),
    )


@asynccontextmanager
async def running(processors: list[Any], watcher: Watcher) -> AsyncGenerator[PipelineWorker]:
    worker = PipelineWorker(
        Pipeline(processors),
        params=PipelineParams(audio_in_sample_rate=24_000, audio_out_sample_rate=24_000),
        observers=[watcher],
        cancel_on_idle_timeout=False,
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    task = asyncio.create_task(runner.run())
    yield worker
    await worker.queue_frame(EndFrame())
    await asyncio.wait({task}, timeout=20)


async def quiet(watcher: Watcher, seconds: float) -> None:
    await until(lambda: time.monotonic() - watcher.last_sound > seconds)


async def by_voice(url: str, speech: bytes, interruption: bytes) -> dict[str, Any]:
    """A written turn, a spoken one, and one that interrupts."""
    watcher = Watcher()
    async with running([service_of(url)], watcher) as worker:
        context = LLMContext([{"role": "user", "content": "What is the capital of France?"}])
        await worker.queue_frame(LLMContextFrame(context))
        result: dict[str, Any] = {"text_turn": await until(lambda: watcher.sound > 24_000)}
        await quiet(watcher, 1.5)
        sound = watcher.sound
        await speak(worker, speech + bytes(48_000))
        result["spoken_turn"] = await until(lambda: watcher.heard and watcher.sound > sound + 9_600)
        turns = watcher.turns
        await speak(worker, interruption + bytes(48_000))
        result["interruption"] = await until(
            lambda: watcher.turns > turns and len(watcher.heard) > 1
        )
        sound = watcher.sound
        result["answer_to_it"] = await until(lambda: watcher.sound > sound + 9_600)
    return result | {
        "heard": watcher.heard,
        "said": watcher.text,
        "errors": watcher.errors,
        "seconds": watcher.sound / 48_000,
    }


async def cancelling(url: str) -> dict[str, Any]:
    """With turns that the client ends, Pipecat cancels the answer that it interrupts."""
    watcher = Watcher()
    async with running([service_of(url, turn_detection=False)], watcher) as worker:
        context = LLMContext([{"role": "user", "content": "Tell me a long story about a dragon."}])
        await worker.queue_frame(LLMContextFrame(context))
        await until(lambda: watcher.sound > 9_600)
        await worker.queue_frame(InterruptionFrame())
        await asyncio.sleep(0.5)
        sound = watcher.sound
        await asyncio.sleep(1.5)
        stopped = watcher.sound == sound
    return {"cancel": stopped, "errors": watcher.errors}


async def calling(url: str) -> dict[str, Any]:
    """The model calls a function by itself, and speaks once it has the result."""
    watcher, calls = Watcher(), []
    service = service_of(url, turn_detection=False)

    async def get_weather(params: FunctionCallParams) -> None:
        calls.append(params.arguments["city"])
        await params.result_callback({"weather": "sunny"})

    service.register_function("get_weather", get_weather)
    weather = FunctionSchema(
        name="get_weather",
        description="Tells the weather of a city.",
        properties={"city": {"type": "string"}},
        required=["city"],
    )
    context = LLMContext(
        [{"role": "user", "content": "Tell me the weather for Berlin, please."}],
        tools=ToolsSchema(standard_tools=[weather]),
    )
    pair = LLMContextAggregatorPair(context)
    async with running([pair.user(), service, pair.assistant()], watcher) as worker:
        await worker.queue_frame(LLMRunFrame())
        called = await until(lambda: calls)
        answered = await until(lambda: watcher.sound > 9_600)
    return {"tool_call": called and answered, "calls": calls, "errors": watcher.errors}


async def main(url: str, speech: bytes, interruption: bytes) -> dict[str, Any]:
    parts = [
        await by_voice(url, speech, interruption),
        await cancelling(url),
        await calling(url),
    ]
    errors = [error for part in parts for error in part.pop("errors")]
    return {key: value for part in parts for key, value in part.items()} | {"errors": errors}


if __name__ == "__main__":
    url, speech_file, interruption_file = sys.argv[1:]
    outcome = asyncio.run(
        main(url, Path(speech_file).read_bytes(), Path(interruption_file).read_bytes())
    )
    print(json.dumps(outcome))
