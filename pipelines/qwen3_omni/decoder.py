"""The decoder, streamed: frames of codes in, samples out, nothing looked ahead.

Its layers are those of Qwen3-TTS's codec. What differs: the codebooks' embeddings are averaged, and
every upsampling whose kernel spans two strides drops its first stride of a stream, where there is
nothing before the first value to mix with. A stream of n frames therefore has a fixed number of
samples less than n times those of a frame. The samples of a request are those of the reference's
decoder over all its frames at once (`Qwen3OmniMoeCode2Wav.forward` of transformers), however they
are cut into steps; names of modules are those of the checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeCode2WavConfig,
)

from pipelines.qwen3_omni.model_configuration import rope_theta
from pipelines.qwen3_tts.codec import (
    CausalConvolution,
    CausalUpsampling,
    ConvNeXtBlock,
    DecoderSizes,
    ResidualUnit,
    SnakeBeta,
)
from pipelines.qwen3_tts.codec_state import StateLayout, StreamStep
from pipelines.qwen3_tts.codec_transformer import CodecTransformer


@dataclass(slots=True)
class DecoderStep(StreamStep):
    """A step whose requests all begin, or all go on.

    Attributes:
        begins: Whether nothing came before.
        dropped: By values a frame, how many values streams have lost at that depth.
    """

    begins: bool = False
    dropped: Mapping[int, int] = field(default_factory=dict)

    def lost(self, units: int) -> int:
        """See the base class: a beginning has less."""
        return self.dropped.get(units, 0) if self.begins else 0


class Upsampling(CausalUpsampling):
    """A transposed convolution that drops the first stride of a stream, if its kernel spans two."""

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shapes: [requests, inputs, time] -> [requests, outputs, time * stride], or less."""
        made = super().forward(values, step)
        if isinstance(step, DecoderStep) and step.begins:
            made = made[..., self.before * self.stride :]
        return made


class UpsamplingBlock(nn.Module):
    """Upsampling by one of the rates, then three residual units."""

    def __init__(
        self, layout: StateLayout, units: int, inputs: int, outputs: int, rate: int
    ) -> None:
        """Builds it; `units` are values a frame before it."""
        super().__init__()
        upsampling = Upsampling(layout, units, inputs, outputs, 2 * rate, rate)
        residual = [ResidualUnit(layout, units * rate, outputs, d) for d in (1, 3, 9)]
        self.block = nn.ModuleList([SnakeBeta(inputs), upsampling, *residual])

    def forward(self, values: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shapes: [requests, inputs, time] -> [requests, outputs, time * rate], or less."""
        values = self.block[0](values)
        for part in self.block[1:]:
            values = part(values, step)
        return values


class PreTransformer(CodecTransformer):
    """The transformer over frames; its layers work in the width of the embeddings."""

    def __init__(self, layout: StateLayout, sizes: DecoderSizes) -> None:
        """Builds the layers, without projections in and out."""
        super().__init__(layout, sizes)
        del self.input_proj, self.output_proj
        self.add_module("input_proj", nn.Identity())
        self.add_module("output_proj", nn.Identity())


def decoder_sizes(config: Qwen3OmniMoeCode2WavConfig) -> DecoderSizes:
    """The sizes in the words of the layers."""
    return DecoderSizes(
        codebooks=config.num_quantizers,
        codes=config.codebook_size,
        codebook_dim=config.hidden_size,
        hidden=config.hidden_size,
        latent=config.hidden_size,
        heads=config.num_attention_heads,
        key_value_heads=config.num_key_value_heads,
        head_dim=config.hidden_size // config.num_attention_heads,
        window=config.sliding_window,
        intermediate=config.intermediate_size,
        layers=config.num_hidden_layers,
        norm_eps=config.rms_norm_eps,
        rope_theta=rope_theta(config.rope_parameters),
        upsample_rates=tuple(config.upsample_rates),
        upsampling_ratios=tuple(config.upsampling_ratios),
        decoder=config.decoder_dim,
    )


class Decoder(nn.Module):
    """The whole decoder."""

    offsets: torch.Tensor

    def __init__(self, sizes: DecoderSizes) -> None:
        """Builds the layers and lays out the state."""
        super().__init__()
        self.sizes = sizes
        layout = StateLayout()
        self.code_embedding = nn.Embedding(sizes.codes * sizes.codebooks, sizes.hidden)
        self.pre_transformer = PreTransformer(layout, sizes)
        units, width = 1, sizes.hidden
        self.upsample = nn.ModuleList()
        for ratio in sizes.upsampling_ratios:
            wider = Upsampling(layout, units, width, width, ratio, ratio)
            units *= ratio
            self.upsample.append(nn.ModuleList([wider, ConvNeXtBlock(layout, units, width)]))
        self.decoder = nn.ModuleList([CausalConvolution(layout, units, width, sizes.decoder, 7)])
        width, lost = sizes.decoder, 0
        self.dropped: dict[int, int] = {}
        for rate in sizes.upsample_rates:
            self.decoder.append(UpsamplingBlock(layout, units, width, width // 2, rate))
            units, width, lost = units * rate, width // 2, (lost + 1) * rate
            self.dropped[units] = lost
        self.decoder.append(SnakeBeta(width))
        self.decoder.append(CausalConvolution(layout, units, width, 1, 7))
        self.frame_samples = units
        self.lost_samples = lost
        self.state_width = layout.width
        offsets = torch.arange(sizes.codebooks) * sizes.codes
        self.register_buffer("offsets", offsets, persistent=False)

    def forward(self, codes: torch.Tensor, step: DecoderStep) -> torch.Tensor:
        """Decodes one step.

        Args:
            codes: int64, shape [requests, frames, codebooks].
            step: The requests' states, which are advanced.

        Returns:
            Samples in [-1, 1], shape [requests, samples]; of a beginning `lost_samples` less than
            `frame_samples` for each frame.
        """
        step.dropped = self.dropped
        hidden = self.code_embedding(codes + self.offsets).mean(dim=2)
        hidden = self.pre_transformer(hidden, step).transpose(1, 2)
        for pair in self.upsample.children():
            wider, block = pair.children()
            hidden = block(wider(hidden, step), step)
        for part in self.decoder:
            hidden = part(hidden) if isinstance(part, SnakeBeta) else part(hidden, step)
        return hidden.squeeze(1).clamp(-1, 1)
