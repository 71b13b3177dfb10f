"""Code2Wav as a generation stage: frames in, samples out, batched over requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine import SpeechParameters
from engine.generation import GenerationItem
from pipelines.lark.codec import FEATURE_SIZE, FRAME_RATE
from pipelines.lark.decoder import Code2WavDecoder, DecoderState
from pipelines.lark.voices import find_voice

SAMPLE_RATE = 24_000
DEFAULT_SEED = 0
"""Seed of the noise where a request names none: the same text then sounds the same."""


@dataclass(slots=True)
class LarkCode2Wav:
    """The streaming decoder behind the runtime's generation interface.

    Attributes:
        decoder: Does the work.
    """

    decoder: Code2WavDecoder
    sample_rate: int = SAMPLE_RATE
    unit_samples: int = SAMPLE_RATE // FRAME_RATE

    def open(self, parameters: SpeechParameters) -> DecoderState:
        """The state of a request that has not said anything yet."""
        voice = find_voice(parameters.voice)
        seed = DEFAULT_SEED if parameters.seed is None else parameters.seed
        return self.decoder.new_state(seed, voice.f0_scale, voice.formant_scale)

    def step(self, items: list[GenerationItem]) -> list[npt.NDArray[np.float32]]:
        """Samples of each item that are complete now."""
        empty = torch.zeros(0, FEATURE_SIZE)
        features = [torch.cat(item.data) if item.data else empty for item in items]
        samples = self.decoder.step(
            [item.state for item in items], features, [item.final for item in items]
        )
        return [np.clip(part, -1.0, 1.0) for part in samples]
