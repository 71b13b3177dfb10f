from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from app.audio.encoders import open_encoder
from app.audio.formats import AudioFormat
from app.audio.worker import INLINE_SAMPLES, CodecPool, StreamEncoder


class SlowEncoder:
    """Notes the threads that use it and whether two ever do at once."""

    kept = 0

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.busy = False
        self.overlapped = False
        self.closed = threading.Event()

    def encode(self, samples: object) -> bytes:
        self._use(0.05)
        return b"x"

    def finish(self) -> bytes:
        self._use(0.0)
        return b"end"

    def close(self) -> None:
        self._use(0.0)
        self.closed.set()

    def _use(self, seconds: float) -> None:
        self.overlapped = self.overlapped or self.busy
        self.busy = True
        self.threads.append(threading.current_thread().name)
        time.sleep(seconds)
        self.busy = False


@pytest.fixture
def pool() -> CodecPool:
    return CodecPool(2)


def test_codecs_run_on_worker_threads(pool: CodecPool) -> None:
    slow = SlowEncoder()

    async def use() -> bytes:
        encoder = StreamEncoder(pool, slow, plain=False)
        return await encoder.encode(np.zeros(1, np.float32)) + await encoder.finish()

    assert asyncio.run(use()) == b"xend"
    assert all(name.startswith("antiphon-codec") for name in slow.threads)


def test_a_codec_is_not_freed_while_a_cancelled_call_uses_it(pool: CodecPool) -> None:
    slow = SlowEncoder()

    async def use() -> None:
        encoder = StreamEncoder(pool, slow, plain=False)
        encoding = asyncio.create_task(encoder.encode(np.zeros(1, np.float32)))
        await asyncio.sleep(0.01)
        encoding.cancel()
        encoder.discard()
        await asyncio.gather(encoding, return_exceptions=True)

    asyncio.run(use())
    assert slow.closed.wait(5)
    assert not slow.overlapped


def test_only_short_plain_conversions_stay_on_the_loop(pool: CodecPool) -> None:
    slow = SlowEncoder()

    async def use() -> None:
        encoder = StreamEncoder(pool, slow, plain=True)
        await encoder.encode(np.zeros(INLINE_SAMPLES, np.float32))
        await encoder.encode(np.zeros(INLINE_SAMPLES + 1, np.float32))

    asyncio.run(use())
    assert slow.threads[0] == "MainThread"
    assert slow.threads[1].startswith("antiphon-codec")


def test_the_loop_runs_on_while_sound_is_encoded(pool: CodecPool) -> None:
    async def lag_while_encoding() -> float:
        encoder = StreamEncoder(pool, open_encoder(AudioFormat.MP3, 24_000), plain=False)
        noise = np.random.default_rng(0).uniform(-1, 1, 24_000 * 20).astype(np.float32)
        encoding = asyncio.create_task(encoder.encode(noise))
        worst = 0.0
        while not encoding.done():
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - before)
        encoder.discard()
        return worst

    started = time.perf_counter()
    worst = asyncio.run(lag_while_encoding())
    assert worst < (time.perf_counter() - started) / 2
