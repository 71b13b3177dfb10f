"""Recordings that clients send, decoded for what listens."""

from __future__ import annotations

import base64
import io
from collections.abc import Generator
from contextlib import contextmanager

import av
import numpy as np

from app.audio.pcm import FloatSamples
from app.audio.worker import CodecPool
from app.ear import SAMPLE_RATE
from app.errors import ApiError, invalid, retry_later
from app.settings import Settings
from engine import ErrorCode

_RETRY_SECONDS = 5.0


class Recordings:
    """Decodes recordings, one after another.

    A small file may hold hours of sound. So there is a bound to what it may hold, and a thread for
    it that nothing else waits for.
    """

    def __init__(self, settings: Settings) -> None:
        """Starts no thread before it is needed."""
        self._most_seconds = settings.transcription_seconds
        self._most_places = settings.transcriptions
        self._places = 0
        self._pool = CodecPool(1)

    @contextmanager
    def place(self) -> Generator[None]:
        """Counts as one more transcription until the block ends.

        Raises:
            ApiError: 503, there are as many as may be.
        """
        if self._places >= self._most_places:
            message = f"This server transcribes {self._most_places} recordings already."
            raise retry_later(message, ErrorCode.OVERLOADED, _RETRY_SECONDS)
        self._places += 1
        try:
            yield
        finally:
            self._places -= 1

    async def decode(self, data: bytes | str, param: str = "file") -> FloatSamples:
        """A recording in any form that FFmpeg knows, as mono samples for the ear.

        Args:
            data: The recording; text is base64.
            param: What the client calls it.

        Raises:
            ApiError: 400, it is no recording, holds no sound, or lasts too long.
        """

        def decode() -> FloatSamples:
            recording = _from_base64(data, param) if isinstance(data, str) else data
            return _decode(recording, param, self._most_seconds)

        return await self._pool.run(decode)

    def close(self) -> None:
        """Takes no more work and lets the running piece end."""
        self._pool.close()


def _from_base64(text: str, param: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise invalid(param, "Expected base64-encoded audio.", "invalid_value") from None


def _decode(data: bytes, param: str, most_seconds: float) -> FloatSamples:
    parts = []
    samples = 0
    try:
        with av.open(io.BytesIO(data), "r") as container:
            resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
            for frame in container.decode(audio=0):
                resampled = [part.to_ndarray().reshape(-1) for part in resampler.resample(frame)]
                parts += resampled
                samples += sum(map(len, resampled))
                if samples > most_seconds * SAMPLE_RATE:
                    raise _too_long(param, most_seconds)
            parts += [part.to_ndarray().reshape(-1) for part in resampler.resample(None)]
    except (av.FFmpegError, IndexError, ValueError):
        raise _unreadable(param) from None
    if not parts:
        raise _unreadable(param)
    return np.concatenate(parts).astype(np.float32, copy=False)


def _unreadable(param: str) -> ApiError:
    return invalid(
        param, "The file is no recording that can be read, or it is damaged.", "invalid_value"
    )


def _too_long(param: str, most_seconds: float) -> ApiError:
    return invalid(
        param,
        f"The recording lasts longer than {most_seconds:g} s; send it in parts.",
        "recording_too_long",
    )
