"""Runs encoders on worker threads, so that the event loop never computes."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.audio.encoders import AudioEncoder
from app.audio.pcm import FloatSamples

Result = TypeVar("Result")

INLINE_SAMPLES = 24_000
"""Converting up to this many samples to 16 bits takes less time than handing them to a thread."""


class CodecPool:
    """The threads that encode for all responses."""

    def __init__(self, threads: int) -> None:
        """Starts no thread before it is needed; there will be at most `threads`."""
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="antiphon-codec")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs `work` on one of the threads and waits for its result."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def discard(self, work: Callable[[], None]) -> None:
        """Runs `work` on one of the threads; nobody waits for it."""
        self._executor.submit(work)

    def close(self) -> None:
        """Takes no more work and lets the running pieces end."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class StreamEncoder:
    """One response's encoder, used from the event loop.

    Attributes:
        encoder: The encoder itself.
    """

    def __init__(self, pool: CodecPool, encoder: AudioEncoder, *, plain: bool) -> None:
        """`plain` says that encoding is a mere conversion, quick enough for the event loop."""
        self.encoder = encoder
        self._pool = pool
        self._plain = plain
        # A cancelled response stops waiting for its thread, but the thread goes on until its call
        # is over. Closing must wait for that: a codec freed while it encodes is a crash.
        self._lock = threading.Lock()

    @property
    def kept(self) -> int:
        """Bytes that are made already and that only `finish` returns."""
        return self.encoder.kept

    async def encode(self, samples: FloatSamples) -> bytes:
        """Encodes samples that follow the ones before; returns the bytes that are ready."""
        if self._plain and len(samples) <= INLINE_SAMPLES:
            return self.encoder.encode(samples)
        return await self._pool.run(lambda: self._locked(lambda: self.encoder.encode(samples)))

    async def finish(self) -> bytes:
        """Flushes the encoder; returns the rest of the bytes."""
        return await self._pool.run(lambda: self._locked(self.encoder.finish))

    def discard(self) -> None:
        """Frees the encoder as soon as no thread uses it."""
        self._pool.discard(lambda: self._locked(self.encoder.close))

    def _locked(self, work: Callable[[], Result]) -> Result:
        with self._lock:
            return work()


def to_base64(data: bytes) -> str:
    """The bytes as padded base64 text."""
    return base64.b64encode(data).decode("ascii")
