"""Code2Wav: the codec's decoder as a generation stage, batched over requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from engine import SpeechParameters
from engine.generation import GenerationItem
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


@dataclass(slots=True)
class StreamState:
    """A request's state.

    Attributes:
        row: What the layers keep, shape [width].
        frames: Frames so far.
    """

    row: torch.Tensor
    frames: int = 0


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
            step: The requests' states, which are advanced.

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


@dataclass(slots=True)
class Qwen3TTSCode2Wav:
    """The decoder behind the runtime's generation interface.

    Attributes:
        decoder: Does the work.
        sample_rate: Samples a second.
        device: Where it works.
    """

    decoder: CodecDecoder
    sample_rate: int
    device: torch.device

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
        dtype = next(self.decoder.parameters()).dtype
        return StreamState(torch.zeros(self.decoder.state_width, dtype=dtype, device=self.device))

    @torch.inference_mode()
    def step(self, items: list[GenerationItem]) -> list[npt.NDArray[np.float32]]:
        """Samples of each item's frames."""
        results = [np.zeros(0, np.float32) for _ in items]
        busy = [index for index, item in enumerate(items) if item.data]
        if not busy:
            return results
        states = [items[index].state for index in busy]
        codes = [np.concatenate([part.codes for part in items[index].data]) for index in busy]
        samples = self._decode(states, codes)
        for index, sound in zip(busy, samples, strict=True):
            silent = sum(len(part.codes) for part in items[index].data if part.silent)
            results[index] = sound[silent * self.unit_samples :]
        return results

    def _decode(
        self, states: list[StreamState], codes: list[npt.NDArray[np.int64]]
    ) -> list[npt.NDArray[np.float32]]:
        frames = [len(part) for part in codes]
        padded = np.zeros((len(codes), max(frames), self.decoder.sizes.codebooks), np.int64)
        for row, part in zip(padded, codes, strict=True):
            row[: len(part)] = part
        rows = torch.stack([state.row for state in states])
        positions = torch.tensor([state.frames for state in states], device=self.device)
        step = StreamStep(rows, frames, positions)
        inputs = torch.from_numpy(padded).transpose(1, 2).to(self.device)
        samples = self.decoder(inputs, step).float().cpu().numpy()
        for state, row, count in zip(states, rows, frames, strict=True):
            # A copy: a row of the batch would keep the whole batch's states alive.
            state.row = row.clone()
            state.frames += count
        return [
            sound[: count * self.unit_samples].copy()
            for sound, count in zip(samples, frames, strict=True)
        ]
