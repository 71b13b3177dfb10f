"""Sample rate conversion at the edge, for pipelines that do not work at 24 kHz."""

from __future__ import annotations

import numpy as np
import soxr  # type: ignore[import-untyped]

from app.audio.pcm import FloatSamples


class StreamResampler:
    """Converts one stream; its filter's state lives from chunk to chunk, so seams stay silent."""

    def __init__(self, source_rate: int, target_rate: int) -> None:
        """Both rates are in samples a second; equal ones make this a pass-through."""
        self._stream = (
            None
            if source_rate == target_rate
            else soxr.ResampleStream(source_rate, target_rate, num_channels=1, dtype="float32")
        )

    def process(self, samples: FloatSamples, *, last: bool = False) -> FloatSamples:
        """Returns the converted samples that are ready; all the rest of them when `last`."""
        if self._stream is None:
            return samples
        return np.asarray(self._stream.resample_chunk(samples, last=last), dtype=np.float32)
