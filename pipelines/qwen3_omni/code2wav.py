"""Code2Wav: the decoder as a generation stage, batched over requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3OmniMoeConfig
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeCode2WavConfig,
)

from engine import SpeechParameters
from engine.cuda_graphs import Recorder, Tensors
from engine.generation import GenerationItem
from pipelines.qwen.codec_stream import CodecStream, Samples, StreamState
from pipelines.qwen.weights import load_module
from pipelines.qwen3_omni.decoder import Decoder, DecoderStep, decoder_sizes
from pipelines.qwen3_omni.model_configuration import part

SAMPLE_RATE = 24_000
"""The checkpoints do not say it; the model's authors do."""


class Qwen3OmniCode2Wav:
    """The decoder behind the runtime's generation interface.

    Attributes:
        decoder: Does the work.
    """

    sample_rate = SAMPLE_RATE

    def __init__(self, decoder: Decoder, device: torch.device) -> None:
        """Takes a loaded decoder and where it works."""
        self.decoder = decoder
        sizes = decoder.sizes.codebooks, self.unit_samples
        self._beginning = CodecStream(partial(self.advance, begins=True), *sizes, device)
        self._continuing = CodecStream(partial(self.advance, begins=False), *sizes, device)
        dtype = next(decoder.parameters()).dtype
        self._silence = torch.zeros(decoder.state_width, dtype=dtype, device=device)

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
    def unit_samples(self) -> int:
        """Samples of a frame."""
        return self.decoder.frame_samples

    def open(self, parameters: SpeechParameters) -> StreamState:
        """The state of a request that has not said anything yet."""
        del parameters
        return StreamState(self._silence)

    def capture(
        self, units: Sequence[int], batch_sizes: Sequence[int], recorder: Recorder | None = None
    ) -> None:
        """See `engine.generation.CapturedModule`."""
        for stream in (self._continuing, self._beginning):
            stream.capture(self._silence, units, batch_sizes, recorder)

    @torch.inference_mode()
    def step(self, items: list[GenerationItem]) -> list[Samples]:
        """Samples of each item's frames; those that begin are a batch of their own."""
        results = [np.zeros(0, np.float32) for _ in items]
        busy = [index for index, item in enumerate(items) if item.data]
        beginning = [index for index in busy if items[index].state.frames == 0]
        continuing = [index for index in busy if items[index].state.frames > 0]
        for stream, chosen, lost in (
            (self._beginning, beginning, self.decoder.lost_samples),
            (self._continuing, continuing, 0),
        ):
            if not chosen:
                continue
            states = [items[index].state for index in chosen]
            codes = [np.stack(items[index].data) for index in chosen]
            for index, sound in zip(chosen, stream.step(states, codes, lost), strict=True):
                results[index] = sound
        return results

    def advance(
        self,
        codes: torch.Tensor,
        rows: torch.Tensor,
        positions: torch.Tensor,
        frames: torch.Tensor | None = None,
        *,
        begins: bool,
    ) -> Tensors:
        """See `pipelines.qwen.codec_stream.Advance`; all streams begin with this step, or none."""
        step = DecoderStep(rows, positions, frames, begins=begins)
        return self.decoder(codes, step).float(), step.kept
