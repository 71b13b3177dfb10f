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
from pipelines.lark.stretch import Shortener, split_speed
from pipelines.lark.voices import find_voice

SAMPLE_RATE = 24_000
DEFAULT_SEED = 0
"""Seed of the noise where a request names none: the same text then sounds the same."""


@dataclass(slots=True)
class SpeechState:
    """What one request carries from step to step.

    Attributes:
        decoder: The decoder's part.
        shortener: Makes fast speech; None up to the pace that the decoder itself speaks.
    """

    decoder: DecoderState
    shortener: Shortener | None


@dataclass(slots=True)
class LarkCode2Wav:
    """The streaming decoder behind the runtime's generation interface.

    Attributes:
        decoder: Does the work.
    """

    decoder: Code2WavDecoder
    sample_rate: int = SAMPLE_RATE
    unit_samples: int = SAMPLE_RATE // FRAME_RATE

    def open(self, parameters: SpeechParameters) -> SpeechState:
        """The state of a request that has not said anything yet."""
        voice = find_voice(parameters.voice)
        seed = DEFAULT_SEED if parameters.seed is None else parameters.seed
        _, factor = split_speed(parameters.speed)
        return SpeechState(
            self.decoder.new_state(seed, voice.f0_scale, voice.formant_scale),
            Shortener(factor, self.sample_rate) if factor > 1.0 else None,
        )

    def step(self, items: list[GenerationItem]) -> list[npt.NDArray[np.float32]]:
        """Samples of each item that are complete now."""
        empty = torch.zeros(0, FEATURE_SIZE)
        features = [torch.cat(item.data) if item.data else empty for item in items]
        states = [item.state.decoder for item in items]
        made = self.decoder.step(states, features, [item.final for item in items])
        return [_finished(item, samples) for item, samples in zip(items, made, strict=True)]


def _finished(item: GenerationItem, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    shortener = item.state.shortener
    if shortener is not None:
        samples = shortener.shorten(samples, item.final)
    return np.clip(samples, -1.0, 1.0)
