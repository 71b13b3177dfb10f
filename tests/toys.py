"""A pipeline without models for the real runtime: every character is one step and 10 ms of sound.

Characters: text → stage `steps` (one character a step) → stage `voice` (constant samples whose
value tells the character) → client. Some characters make a part of it fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import yaml

from engine import (
    AudioPayload,
    Chunk,
    InvalidRequestError,
    OmniRequest,
    PipelineDescription,
    SpeechParameters,
    TextInput,
    TextReport,
)
from engine.adapter import GenerationInput
from engine.chunk import TextPayload
from engine.deploy_config import StageDeployment
from engine.engine import AsyncOmniEngine
from engine.generation import GenerationItem, GenerationReplica
from engine.orchestrator import Choice, Orchestrator
from engine.pipeline_config import (
    CLIENT,
    EdgeConfig,
    Models,
    PipelineConfig,
    StageConfig,
    StageKind,
)

RATE = 24_000
UNIT = 240
"""Samples that a character becomes."""

STEP_CAPACITY = 8
"""Steps that may be in flight between the two stages."""

SOUND_CAPACITY = 64 * UNIT
LONGEST = 16 * UNIT

ADAPTER_FAULT, STEP_FAULT, VOICE_FAULT, ODD_FAULT, OPEN_FAULT, INPUT_FAULT = "¹²³⁴⁵⁶"
"""Characters at which a part raises; ODD_FAULT is an exception that nobody expects, and at
INPUT_FAULT the adapter says that the text is wrong."""

Result = TypeVar("Result")


class OddError(Exception):
    """What no list of expected exceptions names."""


class TextToCharacters:
    def __init__(self) -> None:
        self._characters: deque[str] = deque()
        self._closed = False

    def push(self, payload: TextPayload) -> None:
        self._characters.extend(payload.text)

    def close(self) -> None:
        self._closed = True

    def hurry(self) -> None:
        pass

    def pull(self) -> str | None:
        if not self._characters:
            return None
        character = self._characters.popleft()
        if character == ADAPTER_FAULT:
            raise ValueError("the adapter cannot read this")
        if character == INPUT_FAULT:
            raise InvalidRequestError("text", "This cannot be said; leave it out.")
        return character

    @property
    def finished(self) -> bool:
        return self._closed and not self._characters


class CharactersToUnits:
    def __init__(self) -> None:
        self._inputs: deque[GenerationInput] = deque()
        self._closed = False

    def push(self, payload: str) -> None:
        self._inputs.append(GenerationInput(1, payload))

    def close(self) -> None:
        self._closed = True

    def hurry(self) -> None:
        pass

    def pull(self) -> GenerationInput | None:
        return self._inputs.popleft() if self._inputs else None

    @property
    def finished(self) -> bool:
        return self._closed and not self._inputs


@dataclass
class StepOutput:
    request_id: str
    output: str | None
    finished: bool


@dataclass
class StepRequest:
    characters: deque[str] = field(default_factory=deque)
    closed: bool = False
    has_credit: bool = True


@dataclass
class StepReplica:
    """One character of every ready request a step."""

    toy: Toy
    input_limit: int
    requests: dict[str, StepRequest] = field(default_factory=dict)

    def add(self, request_id: str, parameters: SpeechParameters) -> None:
        self.requests[request_id] = StepRequest()

    def wants_input(self, request_id: str) -> bool:
        return len(self.requests[request_id].characters) < self.input_limit

    def offer(self, request_id: str, payload: str) -> None:
        self.requests[request_id].characters.append(payload)

    def close_input(self, request_id: str) -> None:
        self.requests[request_id].closed = True

    def set_credit(self, request_id: str, has_credit: bool) -> None:
        self.requests[request_id].has_credit = has_credit

    def ready(self, slacks: Mapping[str, float]) -> list[str]:
        return [
            name
            for name, request in self.requests.items()
            if request.has_credit and (request.characters or request.closed)
        ]

    @property
    def needs_cleaning(self) -> bool:
        return False

    def step(self, slacks: Mapping[str, float]) -> list[StepOutput]:
        self.toy.gate.wait()
        outputs = []
        for name in self.ready(slacks):
            request = self.requests[name]
            character = request.characters.popleft() if request.characters else None
            self.toy.stepped.append((name, character))
            if character == STEP_FAULT:
                raise RuntimeError("this step cannot be made")
            if character == ODD_FAULT:
                raise OddError("nobody expects this")
            finished = request.closed and not request.characters
            if finished:
                del self.requests[name]
            outputs.append(StepOutput(name, character, finished))
        return outputs

    def abort(self, request_id: str) -> None:
        self.requests.pop(request_id, None)

    def close(self) -> None:
        self.requests.clear()


@dataclass
class ToyVoice:
    """Constant samples, one value a character."""

    toy: Toy
    sample_rate: int = RATE
    unit_samples: int = UNIT

    def open(self, parameters: SpeechParameters) -> None:
        if parameters.voice == OPEN_FAULT:
            raise RuntimeError("this voice cannot be opened")

    def step(self, items: list[GenerationItem]) -> list[np.ndarray]:
        self.toy.voice_steps += 1
        for item in items:
            if VOICE_FAULT in item.data:
                raise RuntimeError("this cannot be voiced")
        return [
            np.repeat(np.array([sample_of(c) for c in item.data], np.float32), UNIT)
            for item in items
        ]


def sample_of(character: str) -> float:
    return (ord(character) % 1000 + 1) / 2048


def samples_of(text: str) -> np.ndarray:
    """What a text sounds like."""
    return np.repeat(np.array([sample_of(c) for c in text], np.float32), UNIT)


@dataclass
class Toy:
    """What a toy pipeline did, and a gate that stops it in a step."""

    gate: threading.Event = field(default_factory=threading.Event)
    stepped: list[tuple[str, str | None]] = field(default_factory=list)
    voice_steps: int = 0
    built: list[str] = field(default_factory=list)
    failing_builds: int = 0
    adapter_refuses: str | None = None

    def __post_init__(self) -> None:
        self.gate.set()

    def build_steps(self, folder: Path, deployment: StageDeployment) -> StepReplica:
        self._note("steps")
        return StepReplica(self, deployment.input_limit)

    def build_voice(self, folder: Path, deployment: StageDeployment) -> GenerationReplica:
        self._note("voice")
        return GenerationReplica.of(ToyVoice(self), deployment)

    def _note(self, stage: str) -> None:
        if self.failing_builds:
            self.failing_builds -= 1
            raise RuntimeError("this replica cannot be built")
        self.built.append(stage)

    def text_to_characters(self, models: Models, parameters: SpeechParameters) -> TextToCharacters:
        return TextToCharacters()

    def characters_to_units(
        self, models: Models, parameters: SpeechParameters
    ) -> CharactersToUnits:
        if self.adapter_refuses is not None and parameters.voice == self.adapter_refuses:
            raise RuntimeError("this adapter cannot be made")
        return CharactersToUnits()

    def steps_of(self, request_id: str) -> int:
        return sum(name == request_id for name, _ in self.stepped)

    @property
    def pipeline(self) -> PipelineConfig:
        return PipelineConfig(
            name="toy",
            stages=(
                StageConfig("steps", StageKind.AUTOREGRESSIVE, self.build_steps),
                StageConfig("voice", StageKind.GENERATION, self.build_voice),
            ),
            edges=(
                EdgeConfig(CLIENT, "steps", self.text_to_characters, 4_000_000, 1, _length),
                EdgeConfig("steps", "voice", self.characters_to_units, STEP_CAPACITY, 1, _one),
                EdgeConfig("voice", CLIENT, None, SOUND_CAPACITY, LONGEST, _samples),
            ),
            describe=lambda models: PipelineDescription("toy", ("toy",), (), RATE, False),
            resolve=lambda model, cache: {"steps": Path(), "voice": Path()},
            check=_check,
            inspect=lambda text: TextReport(bool(text)),
            warm_up_text="warm",
            deploy=Path("unused"),
        )


def _check(parameters: SpeechParameters) -> None:
    if parameters.voice == "nobody":
        raise InvalidRequestError("voice", "There is no voice 'nobody'.")


def _length(payload: TextPayload) -> int:
    return len(payload.text)


def _one(payload: object) -> int:
    return 1


def _samples(payload: AudioPayload) -> int:
    return len(payload.samples)


DEPLOYMENT: dict[str, Any] = {
    "stages": {
        "steps": {"input_limit": 4},
        "voice": {"input_limit": 32, "chunk": {"first_units": 2, "maximum_units": 16}},
    },
    "admission": {"max_running": 24, "max_waiting": 512},
}


@contextlib.asynccontextmanager
async def started(
    pipeline: PipelineConfig, folder: Path, deployment: dict[str, Any] | None = None
) -> AsyncIterator[AsyncOmniEngine]:
    """An engine of this pipeline."""
    deploy = folder / "deploy.yaml"
    deploy.write_text(yaml.safe_dump(DEPLOYMENT if deployment is None else deployment))
    with mock.patch("engine.engine.load_pipeline", return_value=pipeline):
        engine = await AsyncOmniEngine.start(
            pipeline=pipeline.name, deploy=deploy, cache_folder=folder, compile_ahead=False
        )
    try:
        yield engine
    finally:
        await engine.close()


async def on_engine_thread(
    engine: AsyncOmniEngine, look: Callable[[Orchestrator], Result]
) -> Result:
    """Looks at the engine's inside on its own thread, between two steps."""
    orchestrator = engine._orchestrator
    return await asyncio.wrap_future(engine._host.call(lambda: look(orchestrator)))


async def until(engine: AsyncOmniEngine, holds: Callable[[Orchestrator], bool]) -> None:
    """Waits, turn by turn of the engine thread, for something to hold there."""
    async with asyncio.timeout(20):
        while not await on_engine_thread(engine, holds):
            pass


async def busy_share(engine: AsyncOmniEngine, seconds: float) -> float:
    """The share of a time in which the engine thread used the processor."""
    identity = engine._host._thread.ident
    assert identity is not None
    clock = time.pthread_getcpuclockid(identity)
    before = time.clock_gettime(clock)
    await asyncio.sleep(seconds)
    return (time.clock_gettime(clock) - before) / seconds


async def turns_taken(engine: AsyncOmniEngine, seconds: float) -> int:
    """How often the engine thread looked for work in a time in which there was none."""
    taken = itertools.count()
    choose = Orchestrator.choose

    def counted(orchestrator: Orchestrator) -> Choice | None:
        next(taken)
        return choose(orchestrator)

    await until_idle(engine)
    with mock.patch.object(Orchestrator, "choose", counted):
        await asyncio.sleep(seconds)
    return next(taken)


async def until_idle(engine: AsyncOmniEngine) -> None:
    """Waits for the engine to have nothing to do."""

    def idle(orchestrator: Orchestrator) -> bool:
        orchestrator.pump()
        return orchestrator.choose() is None

    await until(engine, idle)


def request(name: str, text: str | TextInput, **others: Any) -> OmniRequest:
    content = TextInput.whole(text) if isinstance(text, str) else text
    return OmniRequest(name, content, **others)


Generate = Callable[[OmniRequest], AsyncGenerator[Chunk[Any]]]


async def collect(engine: AsyncOmniEngine | Generate, wanted: OmniRequest) -> list[Chunk[Any]]:
    """All chunks of a request, of the engine or of one of its methods."""
    generate = engine.generate if isinstance(engine, AsyncOmniEngine) else engine
    async with contextlib.aclosing(generate(wanted)) as stream:
        return [chunk async for chunk in stream]


def sound(chunks: list[Chunk[Any]]) -> np.ndarray:
    """The samples of chunks, joined."""
    parts = [c.payload.samples for c in chunks if c.payload is not None]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def assert_one_terminal(chunks: list[Chunk[Any]]) -> None:
    """Gapless numbers from 0, and exactly the last chunk is final (invariants 4 and 8)."""
    assert [chunk.seq for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(chunk.error is None for chunk in chunks[:-1])


async def assert_empty(engine: AsyncOmniEngine) -> None:
    """Nothing of any request is left anywhere (invariant 12)."""

    def left(orchestrator: Orchestrator) -> dict[str, int]:
        counts = {
            "live": len(orchestrator.live),
            "tickets": len(engine._turns.tickets),
            "running": engine._turns.running,
            "waiting": engine._turns.waiting,
            "channels": len(engine._connector),
        }
        for runtime in orchestrator.runtimes:
            counts[f"placed on {runtime.name}"] = len(runtime._placed)
            for slot in runtime.slots:
                counts[f"{runtime.name}.{slot.index}"] = len(slot.requests)
                if slot.replica is not None:
                    counts[f"in {runtime.name}.{slot.index}"] = len(slot.replica.requests)
                    feeds = getattr(slot.replica, "feeds", ())
                    counts[f"feeds of {runtime.name}.{slot.index}"] = len(feeds)
                    blocks = getattr(slot.replica, "key_value_blocks_in_use", int)
                    counts[f"blocks of {runtime.name}.{slot.index}"] = blocks()
        return counts

    counts = await on_engine_thread(engine, left)
    assert not any(counts.values()), counts
    for name in ("running", "waiting", "live"):
        assert engine.registry.get_sample_value(f"antiphon_requests_{name}") == 0
    assert engine.registry.get_sample_value("antiphon_edges_open") == 0
    assert engine.registry.get_sample_value("antiphon_credits_in_use") == 0
