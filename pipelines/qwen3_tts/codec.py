"""The decoder of the 12 Hz codec, streamed: frames of codes in, samples out, nothing looked ahead.

Every layer is causal. A request's state keeps what each layer's receptive field reaches back to:
the last inputs of the convolutions and the keys and values inside the transformer's window. The
samples of a request are therefore those of the reference's decoder over all its frames at once
(`Qwen3TTSTokenizerV2Decoder.forward` in `qwen-tts`), however they are cut into steps. Names of
modules are those of the checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from pipelines.qwen3_tts.codec_state import StateLayout, StreamStep


@dataclass(frozen=True, slots=True)
class DecoderSizes:
    """The sizes of a decoder; see `Qwen3TTSTokenizerV2DecoderConfig` of the reference."""

    codebooks: int
    codes: int
    codebook_dim: int
    hidden: int
    latent: int
    heads: int
    key_value_heads: int
    head_dim: int
    window: int
    intermediate: int
    layers: int
    norm_eps: float
    rope_theta: float
    upsample_rates: tuple[int, ...]
    upsampling_ratios: tuple[int, ...]
    decoder: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> DecoderSizes:
        """From `decoder_config`; what is not said there has the reference's default."""
        hidden, heads = config.get("hidden_size", 1024), config.get("num_attention_heads", 16)
        return cls(
            codebooks=config.get("num_quantizers", 16),
            codes=config.get("codebook_size", 2048),
            codebook_dim=config.get("codebook_dim", 512),
            hidden=hidden,
            latent=config.get("latent_dim", 1024),
            heads=heads,
            key_value_heads=config.get("num_key_value_heads", 16),
            # The published codec's heads are wider than its layers divided by them.
            head_dim=config.get("head_dim") or hidden // heads,
            window=config.get("sliding_window", 72),
            intermediate=config.get("intermediate_size", 3072),
            layers=config.get("num_hidden_layers", 8),
            norm_eps=config.get("rms_norm_eps", 1e-5),
            rope_theta=config.get("rope_theta", 10_000.0),
            upsample_rates=tuple(config.get("upsample_rates", (8, 5, 4, 3))),
            upsampling_ratios=tuple(config.get("upsampling_ratios", (2, 2))),
            decoder=config.get("decoder_dim", 1536),
        )


class CausalConvolution(nn.Module):
    """A convolution that sees its own time and what came before."""

    def __init__(
        self,
        layout: StateLayout,
        units: int,
        inputs: int,
        outputs: int,
        kernel: int,
        dilation: int = 1,
        groups: int = 1,
    ) -> None:
        """Reserves its state; `units` are values a frame."""
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation, groups=groups)
        self.units = units
        reach = (kernel - 1) * dilation
        self.slot = layout.reserve(inputs, reach) if reach else None

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shapes: [requests, inputs, time] -> [requests, outputs, time]."""
        if self.slot is not None:
            values = step.extend(self.slot, values, self.units)
        return self.conv(values)


class CausalUpsampling(nn.Module):
    """A transposed convolution whose kernel spans one or two strides."""

    def __init__(
        self, layout: StateLayout, units: int, inputs: int, outputs: int, kernel: int, stride: int
    ) -> None:
        """Reserves its state; `units` are values a frame before it."""
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride=stride)
        self.units, self.stride = units, stride
        self.before = -(-kernel // stride) - 1
        self.slot = layout.reserve(inputs, self.before) if self.before else None

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shapes: [requests, inputs, time] -> [requests, outputs, time * stride]."""
        length = values.shape[-1] * self.stride
        if self.slot is not None:
            values = step.extend(self.slot, values, self.units)
        skipped = self.before * self.stride
        return self.conv(values)[..., skipped : skipped + length]


class SnakeBeta(nn.Module):
    """x + sin²(αx) / β with α and β by channel, in logarithms (arXiv:2006.08195)."""

    def __init__(self, channels: int) -> None:
        """Leaves the values to the loader."""
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self._factors: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape [requests, channels, time] in and out."""
        if self._factors is None:  # of the loaded weights
            height = (self.beta.exp() + 1e-9).rsqrt()
            self._factors = self.alpha.exp()[:, None], height[:, None]
        pace, height = self._factors
        # On a processor, reading and writing memory is half of this: as few passes as possible.
        wave = (values * pace).sin_().mul_(height)
        return torch.addcmul(values, wave, wave)


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution and a pointwise feed-forward (arXiv:2201.03545)."""

    def __init__(self, layout: StateLayout, units: int, channels: int) -> None:
        """Builds it over `channels`."""
        super().__init__()
        self.dwconv = CausalConvolution(layout, units, channels, channels, 7, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.ones(channels))

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shape [requests, channels, time] in and out."""
        mixed = self.norm(self.dwconv(values, step).transpose(1, 2))
        mixed = self.gamma * self.pwconv2(functional.gelu(self.pwconv1(mixed)))
        return values + mixed.transpose(1, 2)


class ResidualUnit(nn.Module):
    """Two activated convolutions around a skip."""

    def __init__(self, layout: StateLayout, units: int, channels: int, dilation: int) -> None:
        """Builds it over `channels`."""
        super().__init__()
        self.act1, self.act2 = SnakeBeta(channels), SnakeBeta(channels)
        self.conv1 = CausalConvolution(layout, units, channels, channels, 7, dilation)
        self.conv2 = CausalConvolution(layout, units, channels, channels, 1)

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shape [requests, channels, time] in and out."""
        inner = self.conv1(self.act1(values), step)
        return self.conv2(self.act2(inner), step).add_(values)


class DecoderBlock(nn.Module):
    """Upsampling by one of the rates, then three residual units."""

    def __init__(
        self, layout: StateLayout, units: int, inputs: int, outputs: int, rate: int
    ) -> None:
        """Builds it; `units` are values a frame before it."""
        super().__init__()
        upsampling = CausalUpsampling(layout, units, inputs, outputs, 2 * rate, rate)
        self.block = nn.ModuleList(
            [
                SnakeBeta(inputs),
                upsampling,
                *(ResidualUnit(layout, units * rate, outputs, d) for d in (1, 3, 9)),
            ]
        )

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shapes: [requests, inputs, time] -> [requests, outputs, time * rate]."""
        values = self.block[0](values)
        for part in self.block[1:]:
            values = part(values, step)
        return values


class Codebook(nn.Module):
    """One codebook, kept as the running means that it was trained with."""

    def __init__(self, codes: int, width: int) -> None:
        """Leaves the values to the loader."""
        super().__init__()
        self.cluster_usage = nn.Parameter(torch.ones(codes))
        self.embedding_sum = nn.Parameter(torch.zeros(codes, width))

    def table(self) -> torch.Tensor:
        """The codes' vectors, shape [codes, width]."""
        return self.embedding_sum / self.cluster_usage.clamp(min=1e-5)[:, None]


class QuantizerLayer(nn.Module):
    """Holds a codebook under the checkpoint's name."""

    def __init__(self, codes: int, width: int) -> None:
        """Builds the codebook."""
        super().__init__()
        self._codebook = Codebook(codes, width)

    def table(self) -> torch.Tensor:
        """The codes' vectors, shape [codes, width]."""
        return self._codebook.table()


class ResidualQuantizer(nn.Module):
    """The sum of several codebooks, projected."""

    def __init__(self, codebooks: int, codes: int, width: int, outputs: int) -> None:
        """Builds the codebooks; `input_proj` belongs to encoding and is not used here."""
        super().__init__()
        self._layers = [QuantizerLayer(codes, width) for _ in range(codebooks)]
        self.vq = nn.Module()
        self.vq.layers = nn.ModuleList(self._layers)
        self.input_proj = nn.Conv1d(outputs, width, 1, bias=False)
        self.output_proj = nn.Conv1d(width, outputs, 1, bias=False)
        self._codes = codes
        self._lookup: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Shapes: [requests, codebooks, time] -> [requests, outputs, time]."""
        if self._lookup is None:  # of the loaded weights
            table = torch.cat([layer.table() for layer in self._layers])
            firsts = torch.arange(len(self._layers), device=table.device) * self._codes
            self._lookup = table, firsts[:, None]
        table, firsts = self._lookup
        vectors = functional.embedding(codes + firsts, table).sum(dim=1)
        return self.output_proj(vectors.transpose(1, 2))


class SplitQuantizer(nn.Module):
    """The first codebook and the others, each with its own projection."""

    def __init__(self, sizes: DecoderSizes) -> None:
        """Builds both."""
        super().__init__()
        width, outputs = sizes.codebook_dim // 2, sizes.codebook_dim
        self.rvq_first = ResidualQuantizer(1, sizes.codes, width, outputs)
        self.rvq_rest = ResidualQuantizer(sizes.codebooks - 1, sizes.codes, width, outputs)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Shapes: [requests, codebooks, time] -> [requests, codebook_dim, time]."""
        return self.rvq_first(codes[:, :1]) + self.rvq_rest(codes[:, 1:])
