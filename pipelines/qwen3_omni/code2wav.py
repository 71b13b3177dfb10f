"""Code2Wav: the decoder as a generation stage, batched over requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import Qwen3OmniMoeConfig
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeCode2WavConfig,
)

from engine import SpeechParameters
from engine.generation import GenerationItem
from pipelines.qwen.weights import load_module
from pipelines.qwen3_omni.decoder import Decoder, DecoderStep, decoder_sizes
from pipelines.qwen3_omni.model_configuration import part

SAMPLE_RATE = 24_000
"""The checkpoints do not say it; the model's authors do."""

Samples = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


@dataclass(slots=True)
class StreamState:
    """A request's state.

    Attributes:
        row: What the layers keep, shape [width].
        frames: Frames so far.
    """

    row: torch.Tensor
    frames: int = 0


@dataclass(slots=True)
class Qwen3OmniCode2Wav:
    """The decoder behind the runtime's generation interface.

    Attributes:
        decoder: Does the work.
        device: Where it works.
    """

    decoder: Decoder
    device: torch.device

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype, device: torch.device) -> Qwen3OmniCode2Wav:
        """From a checkpoint.

        Raises:
            ConfigurationError: A weight is missing or wrong; it is named.
        """
        config = Qwen3OmniMoeConfig.from_pretrained(folder)
        sizes = decoder_sizes(part(config.code2wav_config, Qwen3OmniMoeCode2WavConfig))
        decoder = Decoder(sizes)
        load_module(decoder, folder, "code2wav.")
        return cls(decoder.eval().to(device, dtype), device)

    @property
    def sample_rate(self) -> int:
        """Samples a second."""
        return SAMPLE_RATE

    @property
    def unit_samples(self) -> int:
        """Samples of a frame."""
        return self.decoder.frame_samples

    def open(self, parameters: SpeechParameters) -> StreamState:
        """The state of a request that has not said anything yet."""
        del parameters
        dtype = next(self.decoder.parameters()).dtype
        return StreamState(torch.zeros(self.decoder.state_width, dtype=dtype, device=self.device))

    @torch.inference_mode()
    def step(self, items: list[GenerationItem]) -> list[Samples]:
        """Samples of each item's frames; those that begin are a batch of their own."""
        results = [np.zeros(0, np.float32) for _ in items]
        busy = [index for index, item in enumerate(items) if item.data]
        beginning = [index for index in busy if items[index].state.frames == 0]
        continuing = [index for index in busy if items[index].state.frames > 0]
        for begins, chosen in ((True, beginning), (False, continuing)):
            if not chosen:
                continue
            states = [items[index].state for index in chosen]
            codes = [np.stack(items[index].data) for index in chosen]
            for index, sound in zip(chosen, self._decode(states, codes, begins), strict=True):
                results[index] = sound
        return results

    def _decode(self, states: list[StreamState], codes: list[Codes], begins: bool) -> list[Samples]:
        frames = [len(one) for one in codes]
        padded = np.zeros((len(codes), max(frames), self.decoder.sizes.codebooks), np.int64)
        for row, one in zip(padded, codes, strict=True):
            row[: len(one)] = one
        rows = torch.stack([state.row for state in states])
        positions = torch.tensor([state.frames for state in states], device=self.device)
        step = DecoderStep(rows, frames, positions, begins)
        samples = self.decoder(torch.from_numpy(padded).to(self.device), step)
        sounds = samples.float().cpu().numpy()
        for state, row, count in zip(states, rows, frames, strict=True):
            # A copy: a row of the batch would keep the whole batch's states alive.
            state.row = row.clone()
            state.frames += count
        lost = self.decoder.lost_samples if begins else 0
        return [
            sound[: count * self.unit_samples - lost].copy()
            for sound, count in zip(sounds, frames, strict=True)
        ]
