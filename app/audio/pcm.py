"""Float samples to signed 16-bit samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatSamples = npt.NDArray[np.float32]
Int16Samples = npt.NDArray[np.int16]

BYTES_PER_SAMPLE = 2

_FULL_SCALE = 32767.0


def to_unit_range(samples: FloatSamples) -> FloatSamples:
    """Clips samples to [-1, 1].

    Not-a-number becomes silence: one bad sample must not become a full-scale click.
    """
    clean = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
    return np.clip(clean, -1.0, 1.0).astype(np.float32, copy=False)


def to_int16(samples: FloatSamples) -> Int16Samples:
    """Rounds float samples to 16 bits, clipping what lies outside [-1, 1].

    Args:
        samples: Mono samples, shape [samples].

    Returns:
        As many 16-bit samples.
    """
    rounded: FloatSamples = np.rint(to_unit_range(samples) * np.float32(_FULL_SCALE))
    return rounded.astype(np.int16)


def to_bytes(samples: FloatSamples) -> bytes:
    """The samples as 16-bit little-endian bytes, always an even number of them."""
    return to_int16(samples).astype("<i2", copy=False).tobytes()
