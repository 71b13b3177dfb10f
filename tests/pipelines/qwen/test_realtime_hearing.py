"""Spoken turns through `/v1/realtime` to the Thinkers' own encoders, as they are being spoken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.audio.wire_formats import WireFormat
from app.ear.tape import Tape
from engine.engine import AsyncOmniEngine
from engine.request import AudioContent
from pipelines.qwen.hearing import Hearing
from pipelines.qwen2_5_omni import hearing as qwen2_5
from pipelines.qwen3_omni import hearing as qwen3
from tests.app.realtime.conversing import Talk, talking
from tests.app.serving import Serving, serving
from tests.checkpoints import qwen2_5_omni, qwen3_omni
from tests.ears import need_ear
from tests.toys import assert_empty
from tests.voices import pcm, silence, synthesized
from tests.watching import metric, until

pytestmark = pytest.mark.asyncio

WRITTEN = {
    "type": "realtime",
    "output_modalities": ["text"],
    "max_output_tokens": 8,
    "audio": {"input": {"turn_detection": None}},
}

QUERY = "model=gpt-realtime"

SENTENCE = "I would like to know what the weather is like today, since I am going out later. "

PIECE = 48_000
"""Bytes of a second."""


@dataclass
class Encoder:
    """What a Thinker's encoder is given, on the engine thread.

    Attributes:
        given: The windows, each of shape [mels, frames], in the order of their encoding.
    """

    given: list[torch.Tensor] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def listen(self, engine: AsyncOmniEngine) -> None:
        replica: Any = engine._runtimes[0].slots[0].replica
        model = replica.core.model_executor.driver_worker.model_runner.get_model()
        tower = getattr(model, "thinker", model).audio_tower
        tower.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, _: Any, args: tuple[Any, ...], inputs: dict[str, Any]) -> None:
        features = args[0] if args else inputs["input_features"]
        windows = features.split(inputs["feature_lens"].flatten().tolist(), dim=1)
        with self.lock:
            self.given.extend(window.clone() for window in windows)

    def taken(self) -> list[torch.Tensor]:
        """What was given since the last call."""
        with self.lock:
            given, self.given = self.given, []
        return given


@dataclass
class Hears:
    """A running server whose Thinker hears."""

    running: Serving
    hearing: Hearing
    encoder: Encoder
    engine: AsyncOmniEngine
    call: Callable[[Any], Any]

    def encoded_ahead(self) -> float:
        return metric(self.running.base_url, "antiphon_encodings_ahead_total")

    def waiting(self) -> float:
        return metric(self.running.base_url, "antiphon_encodings_waiting")


@contextmanager
def hears(pipeline: str, folder: Path, cache: Path, hearing: Hearing) -> Generator[Hears]:
    made: list[tuple[AsyncOmniEngine, asyncio.AbstractEventLoop]] = []
    encoder = Encoder()

    async def start(progress: Callable[[str], None]) -> AsyncOmniEngine:
        engine = await AsyncOmniEngine.start(
            pipeline=pipeline, model=str(folder), cache_folder=cache, compile_ahead=False
        )
        encoder.listen(engine)
        made.append((engine, asyncio.get_running_loop()))
        return engine

    with serving(factory=start, ear=True) as running:
        ((engine, loop),) = made

        def call(coroutine: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

        yield Hears(running, hearing, encoder, engine, call)


@pytest.fixture(scope="module", params=["qwen3_omni", "qwen2_5_omni"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Hears]:
    need_ear()
    save = {
        "qwen3_omni": qwen3_omni.save_tiny_checkpoint,
        "qwen2_5_omni": qwen2_5_omni.save_tiny_checkpoint,
    }[request.param]
    hearing_of = {"qwen3_omni": qwen3.hearing_of, "qwen2_5_omni": qwen2_5.hearing_of}
    folder = tmp_path_factory.mktemp(request.param)
    save(folder)
    cache = tmp_path_factory.mktemp("cache")
    with hears(request.param, folder, cache, hearing_of[request.param](folder)) as made:
        yield made


def said(seconds: float) -> np.ndarray:
    """Somebody who speaks for so long, 24 kHz; loudest at the beginning."""
    sentence = synthesized(SENTENCE)
    speech = np.tile(sentence, int(seconds * 24_000 / len(sentence)) + 1)
    speech = speech[: int(seconds * 24_000)] * 0.25
    speech[:24_000] *= 4.0
    return speech.astype(np.float32)


def reference(server: Hears, sound: bytes) -> tuple[AudioContent, torch.Tensor]:
    """The sound as the ear hears it, and the reference processor's features of it."""
    tape = Tape()
    for at in range(0, len(sound), PIECE):
        tape.append(sound[at : at + PIECE], WireFormat.PCM)
    tape.flush()
    samples = tape.cut(0, tape.end)
    processor = server.hearing.processor
    made = processor(text=processor.audio_token, audio=[samples], return_tensors="pt")
    mask = made["feature_attention_mask"][0].bool()
    return AudioContent(samples), made["input_features"][0][:, mask]


async def written(talk: Talk) -> None:
    await talk.send("session.update", session=WRITTEN)
    await talk.until("session.updated")


async def speak(talk: Talk, sound: bytes) -> None:
    for at in range(0, len(sound), PIECE):
        await talk.append(sound[at : at + PIECE])


async def answer(talk: Talk) -> str:
    await talk.send("input_audio_buffer.commit")
    await talk.send("response.create")
    done = await talk.until("response.done", 60)
    assert done["response"]["status"] in ("completed", "incomplete"), done["response"]
    # Random weights may end an answer before its first word.
    return "".join(item["content"][0]["text"] for item in done["response"]["output"])


def slices(features: torch.Tensor, window: int) -> list[torch.Tensor]:
    return [features[:, at : at + window] for at in range(0, features.shape[1], window)]


def which(window: torch.Tensor, expected: list[torch.Tensor]) -> int:
    """Which slice of the reference's features a window is, bit by bit."""
    same = [n for n, one in enumerate(expected) if torch.equal(one, window)]
    assert len(same) == 1, f"a window of {window.shape[1]} frames is no slice of the reference's"
    return same[0]


async def test_a_turn_is_encoded_while_it_is_spoken_and_bit_by_bit_the_references(
    server: Hears,
) -> None:
    """Each window once, early or late, and all of them; the answer is the same as to it at once."""
    sound = pcm(said(21.3))
    content, features = reference(server, sound)
    expected = slices(features, server.hearing.encoder.window)
    whole = len(expected) - 1
    server.call(forgotten(server))
    server.encoder.taken()
    before = server.encoded_ahead()
    async with talking(server.running.websocket_url, query=QUERY) as talk:
        await written(talk)
        await speak(talk, sound)
        assert until(lambda: server.encoded_ahead() - before >= whole)
        early = server.encoder.taken()
        text = await answer(talk)
        late = server.encoder.taken()
    assert sorted(which(window, expected) for window in early) == list(range(whole))
    # A window that is shorter than a piece of the encoder's is encoded beside silence.
    late = [window for window in late if window.any()]
    assert [which(window, expected) for window in late] == [whole], "only the rest was encoded late"
    server.call(forgotten(server))
    assert text == server.call(at_once(server, content))
    assert server.waiting() == 0
    server.call(assert_empty(server.engine))


async def forgotten(server: Hears) -> None:
    """Empties the encoder's cache."""
    replica: Any = server.engine._runtimes[0].slots[0].replica
    await asyncio.wrap_future(server.engine._host.call(replica.core.reset_encoder_cache))


async def at_once(server: Hears, content: AudioContent) -> str:
    """The answer to a sound that nobody heard before."""
    from tests.pipelines.qwen3_omni.test_encoding_ahead import written as answered

    return await answered(server.engine, "at once", content)


async def test_a_louder_moment_late_in_the_turn_re_encodes_what_it_changes_and_no_more(
    server: Hears,
) -> None:
    """Features are cut off at 80 dB below the loudest moment: here that concerns a silence only."""
    noise = np.random.default_rng(3).normal(0.0, 0.1, 24_000 * 21)
    noise[24_000:30_000] = 0.0
    noise[-12_000:-9_000] *= 4.0
    sound = pcm(noise.astype(np.float32))
    _, features = reference(server, sound)
    expected = slices(features, server.hearing.encoder.window)
    server.call(forgotten(server))
    server.encoder.taken()
    before = server.encoded_ahead()
    async with talking(server.running.websocket_url, query=QUERY) as talk:
        await written(talk)
        await speak(talk, sound[: -PIECE // 2])
        assert until(lambda: server.encoded_ahead() - before >= len(expected) - 1)
        assert until(lambda: server.waiting() == 0)
        early = server.encoder.taken()
        await speak(talk, sound[-PIECE // 2 :])
        await answer(talk)
        late = [window for window in server.encoder.taken() if window.any()]
    fresh = [n for n, one in enumerate(expected) if not any(torch.equal(one, w) for w in early)]
    assert fresh == [0, len(expected) - 1], "the silence's window and the rest"
    assert sorted(which(window, expected) for window in late) == fresh


async def test_turns_that_are_forgotten_leave_nothing(server: Hears) -> None:
    """Eight sessions at once: cleared, left, closed in the middle, or answered."""

    async def session(number: int) -> None:
        async with talking(server.running.websocket_url, query=QUERY) as talk:
            await written(talk)
            sound = pcm(said(17.0 + 0.1 * number))
            await speak(talk, sound[: (number + 2) * len(sound) // 10])
            if number % 4 == 0:
                await talk.send("input_audio_buffer.clear")
                await talk.until("input_audio_buffer.cleared")
                await speak(talk, sound[: len(sound) // 2])
                await answer(talk)
            elif number % 4 == 1:
                await answer(talk)
            elif number % 4 == 2:
                talk.socket.transport.abort()

    async with asyncio.timeout(120):
        await asyncio.gather(*(session(number) for number in range(8)))
    assert until(lambda: server.running.realtime_sessions() == 0)
    assert until(lambda: server.waiting() == 0)
    server.call(assert_empty(server.engine))


async def test_an_interrupted_answer_and_the_turn_that_interrupts_it(server: Hears) -> None:
    """The ear finds the turns; the second begins while the first is being answered."""
    async with talking(server.running.websocket_url, query=QUERY) as talk:
        settings = {**WRITTEN, "max_output_tokens": 512}
        detection = {"type": "server_vad", "silence_duration_ms": 300}
        settings["audio"] = {"input": {"turn_detection": detection}}
        await talk.send("session.update", session=settings)
        await talk.until("session.updated")
        turn = pcm(silence(0.4)) + pcm(said(4.4)) + pcm(silence(0.8))
        await speak(talk, turn)
        await talk.until("response.output_text.delta", 60)
        await speak(talk, turn)
        first = await talk.until("response.done", 60)
        assert first["response"]["status"] in ("cancelled", "completed")
        second = await talk.until("response.created", 60)
        await talk.send("response.cancel")
        done = await talk.until("response.done", 60)
        assert done["response"]["id"] == second["response"]["id"]
    assert until(lambda: server.running.realtime_sessions() == 0)
    assert until(lambda: server.waiting() == 0)
    server.call(assert_empty(server.engine))


async def test_a_turn_longer_than_the_processor_takes_is_heard_in_parts(server: Hears) -> None:
    """The reference would cut off what is longer; here each part is as it is alone."""
    longest = server.hearing._longest
    if longest is None:
        pytest.skip("this model's processor takes sounds of any length")
    sound = pcm(said(longest / 16_000 + 3.3))
    samples = reference(server, sound)[0].samples
    processor = server.hearing.processor
    expected: list[torch.Tensor] = []
    for part in (samples[:longest], samples[longest:]):
        made = processor(text=processor.audio_token, audio=[part], return_tensors="pt")
        features = made["input_features"][0][:, made["feature_attention_mask"][0].bool()]
        expected += slices(features, server.hearing.encoder.window)
    server.call(forgotten(server))
    server.encoder.taken()
    before = server.encoded_ahead()
    async with talking(server.running.websocket_url, query=QUERY) as talk:
        await written(talk)
        await speak(talk, sound)
        assert until(lambda: server.encoded_ahead() - before >= len(expected) - 1)
        await answer(talk)
    given = [which(window, expected) for window in server.encoder.taken()]
    assert sorted(given) == list(range(len(expected)))
