"""The speaker encoder of Base checkpoints: a voice in one vector (ECAPA-TDNN, arXiv:2005.07143).

Names of modules are those of the checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from transformers.audio_utils import mel_filter_bank

SAMPLE_RATE = 24_000
WINDOW, HOP, MELS = 1024, 256, 128
HIGHEST_FREQUENCY = 12_000.0


@dataclass(frozen=True, slots=True)
class SpeakerSizes:
    """The sizes of an encoder; see `Qwen3TTSSpeakerEncoderConfig` of the reference."""

    mels: int
    output: int
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    attention: int
    scale: int
    squeeze: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> SpeakerSizes:
        """From `speaker_encoder_config`; what is not said there has the reference's default."""
        return cls(
            mels=config.get("mel_dim", MELS),
            output=config.get("enc_dim", 1024),
            channels=tuple(config.get("enc_channels", (512, 512, 512, 512, 1536))),
            kernels=tuple(config.get("enc_kernel_sizes", (5, 3, 3, 3, 1))),
            dilations=tuple(config.get("enc_dilations", (1, 2, 3, 4, 1))),
            attention=config.get("enc_attention_channels", 128),
            scale=config.get("enc_res2net_scale", 8),
            squeeze=config.get("enc_se_channels", 128),
        )


def convolution(inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> nn.Conv1d:
    """A convolution that keeps the length and mirrors the ends."""
    return nn.Conv1d(
        inputs, outputs, kernel, dilation=dilation, padding="same", padding_mode="reflect"
    )


class TimeDelay(nn.Module):
    """A convolution over time with a rectifier."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        """Builds the convolution."""
        super().__init__()
        self.conv = convolution(inputs, outputs, kernel, dilation)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shapes: [1, inputs, time] -> [1, outputs, time]."""
        return functional.relu(self.conv(values))


class Res2Net(nn.Module):
    """Groups of channels, each convolved with what the group before it gave."""

    def __init__(self, channels: int, scale: int, kernel: int, dilation: int) -> None:
        """Builds the groups' convolutions; the first group has none."""
        super().__init__()
        self.scale, width = scale, channels // scale
        self.blocks = nn.ModuleList(
            TimeDelay(width, width, kernel, dilation) for _ in range(scale - 1)
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape [1, channels, time] in and out."""
        first, *others = values.chunk(self.scale, dim=1)
        outputs = [first]
        for index, (block, part) in enumerate(zip(self.blocks, others, strict=True)):
            outputs.append(block(part if index == 0 else part + outputs[-1]))
        return torch.cat(outputs, dim=1)


class SqueezeExcitation(nn.Module):
    """Weighs channels by what they hold on average."""

    def __init__(self, channels: int, squeeze: int) -> None:
        """Builds the two maps."""
        super().__init__()
        self.conv1 = convolution(channels, squeeze)
        self.conv2 = convolution(squeeze, channels)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape [1, channels, time] in and out."""
        weights = functional.relu(self.conv1(values.mean(dim=2, keepdim=True)))
        return values * torch.sigmoid(self.conv2(weights))


class SpeakerBlock(nn.Module):
    """Time delay, Res2Net, time delay and squeeze-excitation around a skip."""

    def __init__(self, sizes: SpeakerSizes, index: int) -> None:
        """Builds the block at that place."""
        super().__init__()
        inputs, outputs = sizes.channels[index - 1], sizes.channels[index]
        self.tdnn1 = TimeDelay(inputs, outputs)
        self.res2net_block = Res2Net(
            outputs, sizes.scale, sizes.kernels[index], sizes.dilations[index]
        )
        self.tdnn2 = TimeDelay(outputs, outputs)
        self.se_block = SqueezeExcitation(outputs, sizes.squeeze)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape [1, channels, time] in and out."""
        return values + self.se_block(self.tdnn2(self.res2net_block(self.tdnn1(values))))


class AttentivePooling(nn.Module):
    """Mean and deviation over time, weighed by attention."""

    def __init__(self, channels: int, attention: int) -> None:
        """Builds the attention."""
        super().__init__()
        self.tdnn = TimeDelay(3 * channels, attention)
        self.conv = convolution(attention, channels)

    @staticmethod
    def _statistics(
        values: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        mean = (weights * values).sum(dim=2, keepdim=True)
        variance = (weights * (values - mean).square()).sum(dim=2, keepdim=True)
        return mean, variance.clamp(min=1e-12).sqrt()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shapes: [1, channels, time] -> [1, 2 * channels, 1]."""
        even = torch.full_like(values[:, :1], 1.0 / values.shape[2])
        whole = [part.expand_as(values) for part in self._statistics(values, even)]
        attention = self.conv(torch.tanh(self.tdnn(torch.cat([values, *whole], dim=1))))
        return torch.cat(self._statistics(values, attention.softmax(dim=2)), dim=1)


class SpeakerEncoder(nn.Module):
    """A log-mel spectrogram to a speaker embedding."""

    def __init__(self, sizes: SpeakerSizes) -> None:
        """Builds all blocks."""
        super().__init__()
        channels = sizes.channels
        first = TimeDelay(sizes.mels, channels[0], sizes.kernels[0], sizes.dilations[0])
        inner = [SpeakerBlock(sizes, index) for index in range(1, len(channels) - 1)]
        self.blocks = nn.ModuleList([first, *inner])
        self.mfa = TimeDelay(channels[-1], channels[-1], sizes.kernels[-1], sizes.dilations[-1])
        self.asp = AttentivePooling(channels[-1], sizes.attention)
        self.fc = convolution(2 * channels[-1], sizes.output)

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        """Shapes: [1, mels, time] -> [output]."""
        outputs = []
        values = mels
        for block in self.blocks:
            values = block(values)
            outputs.append(values)
        pooled = self.asp(self.mfa(torch.cat(outputs[1:], dim=1)))
        return self.fc(pooled).flatten()


def log_mels(samples: npt.NDArray[np.float32]) -> torch.Tensor:
    """The log-mel spectrogram that the encoder hears, shape [1, mels, frames].

    Args:
        samples: Mono at 24 kHz, shape [samples].
    """
    filters = mel_filter_bank(
        num_frequency_bins=WINDOW // 2 + 1,
        num_mel_filters=MELS,
        min_frequency=0.0,
        max_frequency=HIGHEST_FREQUENCY,
        sampling_rate=SAMPLE_RATE,
        norm="slaney",
        mel_scale="slaney",
    )
    padding = (WINDOW - HOP) // 2
    padded = functional.pad(torch.from_numpy(samples)[None, None], (padding, padding), "reflect")
    spectrum = torch.stft(
        padded[0], WINDOW, HOP, window=torch.hann_window(WINDOW), center=False, return_complex=True
    )
    magnitude = torch.sqrt(torch.view_as_real(spectrum).square().sum(-1) + 1e-9)
    mels = torch.from_numpy(filters).float().T @ magnitude
    return mels.clamp(min=1e-5).log()
