"""Code2Wav: the codec's decoder as a generation stage, batched over requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from engine import SpeechParameters
from engine.cuda_graphs import Recorder, Tensors
from engine.generation import GenerationItem
from pipelines.qwen.codec_stream import CodecStream, Samples, StreamState
from pipelines.qwen.files import read_json
from pipelines.qwen.weights import load_module
from pipelines.qwen3_tts.codec import (
    CausalConvolution,
    CausalUpsampling,
    ConvNeXtBlock,
    DecoderBlock,
    DecoderSizes,
    SnakeBeta,
    SplitQuantizer,
)
from pipelines.qwen3_tts.codec_state import StateLayout, StreamStep
from pipelines.qwen3_tts.codec_transformer import CodecTransformer


class CodecDecoder(nn.Module):
    """The whole decoder."""

    def __init__(self, sizes: DecoderSizes) -> None:
        """Builds the layers and lays out the state."""
        super().__init__()
        self.sizes = sizes
        layout = StateLayout()
        self.quantizer = SplitQuantizer(sizes)
        self.pre_conv = CausalConvolution(layout, 1, sizes.codebook_dim, sizes.latent, 3)
        self.pre_transformer = CodecTransformer(layout, sizes)
        units, width = 1, sizes.latent
        self.upsample = nn.ModuleList()
        for ratio in sizes.upsampling_ratios:
            wider = CausalUpsampling(layout, units, width, width, ratio, ratio)
            units *= ratio
            self.upsample.append(nn.ModuleList([wider, ConvNeXtBlock(layout, units, width)]))
        self.decoder = nn.ModuleList([CausalConvolution(layout, units, width, sizes.decoder, 7)])
        width = sizes.decoder
        for rate in sizes.upsample_rates:
            self.decoder.append(DecoderBlock(layout, units, width, width // 2, rate))
            units, width = units * rate, width // 2
        self.decoder.append(SnakeBeta(width))
        self.decoder.append(CausalConvolution(layout, units, width, 1, 7))
        self.frame_samples = units
        self.state_width = layout.width

    def forward(self, codes: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Decodes one step.

        Args:
            codes: int64, shape [requests, codebooks, frames].
            step: The requests' states.

        Returns:
            Samples in [-1, 1], shape [requests, frames * frame_samples].
        """
        hidden = self.pre_conv(self.quantizer(codes), step)
        hidden = self.pre_transformer(hidden.transpose(1, 2), step).transpose(1, 2)
        for pair in self.upsample:
            wider, block = pair.children()
            hidden = block(wider(hidden, step), step)
        for part in self.decoder:
            hidden = part(hidden) if isinstance(part, SnakeBeta) else part(hidden, step)
        return hidden.squeeze(1).clamp(-1, 1)


@dataclass(frozen=True, slots=True)
class Frames:
    """Input of the stage.

    Attributes:
        codes: int64, shape [frames, codebooks].
        silent: Whether they only tell the decoder what came before: nothing of them is heard.
    """

    codes: npt.NDArray[np.int64]
    silent: bool = False


class Qwen3TTSCode2Wav:
    """The decoder behind the runtime's generation interface.

    Attributes:
        decoder: Does the work.
        sample_rate: Samples a second.
    """

    def __init__(self, decoder: CodecDecoder, sample_rate: int, device: torch.device) -> None:
        """Takes a loaded decoder and where it works."""
        self.decoder = decoder
        self.sample_rate = sample_rate
        codebooks = decoder.sizes.codebooks
        self._stream = CodecStream(self.advance, codebooks, self.unit_samples, device)
        dtype = next(decoder.parameters()).dtype
        self._silence = torch.zeros(decoder.state_width, dtype=dtype, device=device)

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype, device: torch.device) -> Qwen3TTSCode2Wav:
        """From a checkpoint's `speech_tokenizer`.

        Raises:
            ConfigurationError: The configuration or a weight is missing or wrong; it is named.
        """
        config = read_json(folder / "config.json")
        decoder = CodecDecoder(DecoderSizes.of(config.get("decoder_config") or {}))
        load_module(decoder, folder, "decoder.")
        rate = int(config.get("output_sample_rate", 24_000))
        return cls(decoder.eval().to(device, dtype), rate, device)

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
        self._stream.capture(self._silence, units, batch_sizes, recorder)

    @torch.inference_mode()
    def step(self, items: list[GenerationItem]) -> list[Samples]:
        """Samples of each item's frames."""
        results = [np.zeros(0, np.float32) for _ in items]
        busy = [index for index, item in enumerate(items) if item.data]
        if not busy:
            return results
        states = [items[index].state for index in busy]
        codes = [np.concatenate([part.codes for part in items[index].data]) for index in busy]
        samples = self._stream.step(states, codes)
        for index, sound in zip(busy, samples, strict=True):
            silent = sum(len(part.codes) for part in items[index].data if part.silent)
            results[index] = sound[silent * self.unit_samples :]
        return results

    def advance(
        self,
        codes: torch.Tensor,
        rows: torch.Tensor,
        positions: torch.Tensor,
        frames: torch.Tensor | None = None,
    ) -> Tensors:
        """See `pipelines.qwen.codec_stream.Advance`."""
        step = StreamStep(rows, positions, frames)
        return self.decoder(codes.transpose(1, 2), step).float(), step.kept
