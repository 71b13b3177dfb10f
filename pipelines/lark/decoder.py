"""The decoder of `lark`: feature frames to spectra, streamed with exact results.

One convolution, eight ConvNeXt blocks and a linear head, at 80 frames a second. Each convolution
has seven taps of which `right[layer]` look ahead; their sum is the whole look-ahead of the network.
In a stream every layer keeps its last six input frames. A layer that looks ahead answers that many
frames late, and frames outside the utterance are zero before every layer, so a stream computes the
same numbers as one pass over the whole utterance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from engine.device import to_device, to_host
from pipelines.lark.codec import FEATURE_SIZE, Codebooks, Codec, frame_f0
from pipelines.lark.spectrum import BINS, BRANCHES
from pipelines.lark.synthesis import SynthesisState, synthesise

CODEBOOK_NAMES: Final = ("pitch", "energy", "encoding")

KERNEL: Final = 7
HISTORY: Final = KERNEL - 1
"""Input frames that every layer keeps."""


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the decoder.

    Attributes:
        width: channels of the blocks.
        inner: channels inside a block.
        right: frames each layer looks ahead, first the input convolution, then each block.
    """

    width: int = 256
    inner: int = 768
    right: tuple[int, ...] = (3, 0, 0, 0, 0, 1, 1, 1, 0)

    @property
    def lookahead(self) -> int:
        """Frames that must follow a frame before its spectrum can be computed."""
        return sum(self.right)


class Block(nn.Module):
    """A ConvNeXt block: depthwise convolution, norm, two linear layers, scaled residual."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(width, width, KERNEL, groups=width)
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, inner)
        self.shrink = nn.Linear(inner, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, frames: Tensor, right: int) -> Tensor:
        """Return [B, T, C] from frames with their history, [B, HISTORY + T, C]."""
        length = frames.shape[1] - HISTORY
        mixed = self._mix(frames, length)
        inner = nn.functional.gelu(self.expand(self.norm(mixed)))
        start = HISTORY - right
        residual = frames[:, start : start + length]
        return residual + self.scale * self.shrink(inner)

    def _mix(self, frames: Tensor, length: int) -> Tensor:
        """Apply the depthwise convolution; without gradients tap by tap, which is faster."""
        layer = self.depthwise
        if torch.is_grad_enabled() or layer.bias is None:
            return layer(frames.transpose(1, 2)).transpose(1, 2)
        taps = layer.weight[:, 0].T
        mixed = torch.addcmul(layer.bias, frames[:, :length], taps[0])
        for tap in range(1, KERNEL):
            mixed.addcmul_(frames[:, tap : tap + length], taps[tap])
        return mixed


class Decoder(nn.Module):
    """Feature frames to spectra, whole utterances or streams."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Conv1d(FEATURE_SIZE, config.width, KERNEL)
        self.blocks = nn.ModuleList(
            Block(config.width, config.inner) for _ in range(len(config.right) - 1)
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, BRANCHES * BINS)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return spectra [B, T, BRANCHES * BINS] of whole utterances [B, T, FEATURE_SIZE].

        Args:
            features: zero beyond each utterance's end.
            mask: [B, T, 1], one inside the utterance; None when all have the same length.
        """
        right = self.config.right
        frames = self.input(_padded(features, right[0]).transpose(1, 2)).transpose(1, 2)
        for block, ahead in zip(self.blocks, right[1:], strict=True):
            if mask is not None:
                frames = frames * mask
            frames = block(_padded(frames, ahead), ahead)
        spectra: Tensor = self.head(self.norm(frames))
        return spectra


def _padded(frames: Tensor, right: int) -> Tensor:
    return nn.functional.pad(frames, (0, 0, HISTORY - right, right))


@dataclass
class DecoderState:
    """What one request carries between calls.

    Attributes:
        synthesis: state of the source-filter synthesis.
        received: feature frames seen so far.
        finished: whether the end was processed.
        features: last input frames, [HISTORY, FEATURE_SIZE], on the CPU.
        history: last input frames of every block, [blocks, HISTORY, width], on the device.
    """

    synthesis: SynthesisState
    features: Tensor
    history: Tensor
    received: int = field(default=0)
    finished: bool = field(default=False)


class Code2WavDecoder:
    """Feature frames to samples for many requests at once."""

    def __init__(self, network: Decoder, device: str = "cpu") -> None:
        self.network = network.eval().requires_grad_(False).to(device)
        self.config = network.config
        self.device = torch.device(device)

    def new_state(
        self, seed: int = 0, f0_scale: float = 1.0, formant_scale: float = 1.0
    ) -> DecoderState:
        """Return the state of a request that has not said anything yet."""
        blocks = len(self.network.blocks)
        return DecoderState(
            SynthesisState(seed, f0_scale, formant_scale),
            torch.zeros(HISTORY, FEATURE_SIZE),
            torch.zeros(blocks, HISTORY, self.config.width, device=self.device),
        )

    @torch.inference_mode()
    def step(
        self,
        states: Sequence[DecoderState],
        features: Sequence[Tensor],
        final: Sequence[bool],
    ) -> list[npt.NDArray[np.float32]]:
        """Return the samples that are complete after some more frames of each request.

        Args:
            states: one for each request, changed in place.
            features: [n, FEATURE_SIZE] new frames of each request, n may be 0.
            final: whether the request ends with these frames.
        """
        if any(state.finished for state in states):
            raise ValueError("A finished request cannot take further frames.")
        ahead = self.config.lookahead
        fed = [len(part) + ahead * last for part, last in zip(features, final, strict=True)]
        hidden = self._network(states, features, fed, final)
        emitted = []
        rows = []
        for index, (state, part, last) in enumerate(zip(states, features, final, strict=True)):
            ready = max(state.received - ahead, 0)
            state.received += len(part)
            state.finished = last
            done = state.received if last else max(state.received - ahead, 0)
            emitted.append(done - ready)
            rows.append(hidden[index, fed[index] - emitted[-1] : fed[index]])
        (made,) = to_host(self.network.head(self.network.norm(torch.cat(rows))))
        f0 = [frame_f0(part.numpy()) for part in features]
        return synthesise([state.synthesis for state in states], made.numpy(), emitted, f0, final)

    def _network(
        self,
        states: Sequence[DecoderState],
        features: Sequence[Tensor],
        fed: Sequence[int],
        final: Sequence[bool],
    ) -> Tensor:
        """Run all layers over the new frames; return hidden frames [B, max(fed), width]."""
        longest = max(max(fed), 1)
        frames = torch.zeros(len(states), HISTORY + longest, FEATURE_SIZE)
        for index, (state, part) in enumerate(zip(states, features, strict=True)):
            frames[index, :HISTORY] = state.features
            frames[index, HISTORY : HISTORY + len(part)] = part
        spans = [
            (state.received, state.received + len(part) if last else None)
            for state, part, last in zip(states, features, final, strict=True)
        ]
        history = torch.stack([state.history for state in states])
        for index, state in enumerate(states):
            state.features = frames[index, fed[index] : fed[index] + HISTORY].clone()
        placed = to_device(frames, self.device)
        hidden = self.network.input(placed.transpose(1, 2)).transpose(1, 2)
        delay = self.config.right[0]
        keep = to_device(torch.tensor(fed)[:, None] + torch.arange(HISTORY), self.device)
        rows = torch.arange(len(states), device=self.device)[:, None]
        kept = torch.empty_like(history)
        for layer, block in enumerate(self.network.blocks):
            _clear_outside(hidden, spans, delay)
            frames = torch.cat([history[:, layer], hidden], 1)
            kept[:, layer] = frames[rows, keep]
            hidden = block(frames, self.config.right[layer + 1])
            delay += self.config.right[layer + 1]
        for state, cache in zip(states, kept, strict=True):
            state.history = cache.clone()
        return hidden


def _clear_outside(hidden: Tensor, spans: Sequence[tuple[int, int | None]], delay: int) -> None:
    """Zero the frames before each utterance's start and after its end.

    Frame j of a row stands for frame `first + j - delay` of the utterance.
    """
    for row, (first, end) in zip(hidden, spans, strict=True):
        before = delay - first
        if before > 0:
            row[:before] = 0
        if end is not None:
            row[max(end - first + delay, 0) :] = 0


@dataclass(frozen=True)
class Code2Wav:
    """What turns the Talker's codes into samples: codes → features → samples."""

    codec: Codec
    decoder: Code2WavDecoder


def load_code2wav(folder: Path, device: str = "cpu") -> Code2Wav:
    """Load `code2wav.safetensors` with the sizes that `config.json` beside it names.

    The weights are kept in half precision on disk and in single precision in memory.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))["code2wav"]
    tensors = {
        name: tensor.float() for name, tensor in load_file(folder / "code2wav.safetensors").items()
    }
    books = {name: tensors.pop(f"codebook.{name}").numpy() for name in CODEBOOK_NAMES}
    network = Decoder(DecoderConfig(config["width"], config["inner"], tuple(config["right"])))
    network.load_state_dict(tensors)
    codebooks = Codebooks(
        **books,
        pitch_mean=config["pitch_mean"],
        pitch_deviation=config["pitch_deviation"],
        glide=config["glide"],
        tempo=config["tempo"],
        energy_range=config["energy_range"],
    )
    return Code2Wav(Codec(codebooks), Code2WavDecoder(network, device))
