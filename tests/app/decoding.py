"""Decodes audio with FFmpeg's libraries, as clients do."""

from __future__ import annotations

import io

import av
import numpy as np
import numpy.typing as npt


def decode(data: bytes) -> tuple[npt.NDArray[np.float64], int]:
    """The samples of a whole file and their rate."""
    parts = []
    rate = 0
    with av.open(io.BytesIO(data)) as container:
        for frame in container.decode(audio=0):
            samples = frame.to_ndarray()
            rate = frame.sample_rate
            scale = 32768.0 if samples.dtype == np.int16 else 1.0
            parts.append(samples.reshape(-1).astype(np.float64) / scale)
    return np.concatenate(parts), rate


def lag_of(decoded: npt.NDArray[np.float64], original: npt.NDArray[np.float64]) -> int:
    """How many samples later the original is found in what was decoded."""
    size = 1 << (len(decoded) + len(original)).bit_length()
    spectrum = np.fft.rfft(decoded, size) * np.conj(np.fft.rfft(original, size))
    lag = int(np.argmax(np.fft.irfft(spectrum, size)))
    return lag if lag < size // 2 else lag - size
