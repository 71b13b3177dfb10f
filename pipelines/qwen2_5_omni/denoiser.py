"""The flow-matching transformer of Token2Wav over packed blocks, many segments at many times.

The modules and weights are the reference's (transformers' `Qwen2_5OmniToken2WavDiTModel`); how
they are run is not. The reference attends densely over one whole utterance under a mask that only
lets blocks see their own frames and, in a few layers, a neighbour's. Here the blocks of all
segments stand in one row, so that attention costs what the mask lets through, and what a segment
sees before its first block is kept from the segment before: the keys and values of its last block,
evaluation by evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import nn
from torch.nn import functional
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    DiTDecoderLayer,
    Qwen2_5OmniToken2WavDiTModel,
)

from pipelines.qwen2_5_omni.blocks import BRANCHES, Packing, branched
from pipelines.qwen2_5_omni.flow import FlowSettings

NORM_EPSILON = 1e-6

KeysAndValues = tuple[torch.Tensor, torch.Tensor]
"""Of one block, each [branches, heads, block size, head width]."""


@dataclass(frozen=True, slots=True)
class DenoiserInput:
    """One segment's part of an evaluation.

    Attributes:
        noisy: Where the flow is, shape [frames, mel].
        condition: What `Denoiser.condition` made of it, shape [branches, frames, hidden].
        evaluation: Which evaluation this is; it tells the time.
        start: The segment's first frame in its utterance.
        keep: Frames that are kept; the block that ends there is what the next segment sees.
        before: What this segment sees before its first block, by layer that looks back; empty at
            an utterance's beginning.
    """

    noisy: torch.Tensor
    condition: torch.Tensor
    evaluation: int
    start: int
    keep: int
    before: tuple[KeysAndValues, ...]


@dataclass(frozen=True, slots=True)
class DenoiserOutput:
    """What an evaluation gave one segment.

    Attributes:
        velocity: The guided velocity, shape [frames, mel].
        seen: What the next segment sees of this one, by layer that looks back.
    """

    velocity: torch.Tensor
    seen: tuple[KeysAndValues, ...]


class Denoiser:
    """Evaluates the network for a batch of segments.

    Attributes:
        repeats: Mel frames of a code.
        block_size: Mel frames of a block.
        codes: Codes that have an embedding.
    """

    def __init__(self, model: Qwen2_5OmniToken2WavDiTModel, settings: FlowSettings) -> None:
        """Prepares what depends on the time and on the codes alone."""
        self._model = model
        config = self._model.config
        self._settings = settings
        self._config = config
        self.repeats = config.repeats
        self.block_size = config.block_size
        self._layers = [cast(DiTDecoderLayer, block) for block in self._model.transformer_blocks]
        self._rates = self._model.rotary_embed.inv_freq
        self.device = self._rates.device
        with torch.inference_mode():
            self._split_input()
            self._prepare_times(settings.times().to(self.device))

    @property
    def codes(self) -> int:
        """Codes that have an embedding."""
        return len(self._code_table)

    @property
    def look_backward_layers(self) -> int:
        """Layers that see the block before."""
        return sum(layer.look_backward_block for layer in self._layers)

    @property
    def look_ahead_layers(self) -> int:
        """Layers that see the block behind."""
        return sum(layer.look_ahead_block for layer in self._layers)

    def _split_input(self) -> None:
        """Takes the input projection apart: only its first part depends on the flow."""
        embed = self._model.input_embed
        widths = [
            getattr(self._config, n) for n in ("mel_dim", "enc_dim", "emb_dim", "enc_emb_dim")
        ]
        mel, reference, code, speaker = embed.proj.weight.split(widths, dim=1)
        self._mel_weight, self._reference_weight, self._speaker_weight = mel, reference, speaker
        self._code_table = functional.linear(self._model.text_embed.codec_embed.weight, code)

    def _prepare_times(self, times: torch.Tensor) -> None:
        """The modulations of every layer at every evaluation, shape [evaluations, 6, hidden]."""
        embedding = functional.silu(self._model.time_embed(times))
        self._modulations = [
            layer.attn_norm.linear(embedding).unflatten(-1, (6, -1)) for layer in self._layers
        ]
        self._last_modulation = self._model.norm_out.linear(embedding).unflatten(-1, (2, -1))

    @torch.inference_mode()
    def voice(self, conditioning: torch.Tensor, reference_mel: torch.Tensor) -> torch.Tensor:
        """What a speaker adds to every frame's input.

        Args:
            conditioning: The speaker's embedding, shape [speaker width].
            reference_mel: A mel spectrogram of the voice, shape [frames, mel].

        Returns:
            Shape [branches, hidden].
        """
        embed = self._model.input_embed
        reference = reference_mel.to(self.device)[None]
        encoded = embed.spk_encoder(torch.cat([reference, torch.zeros_like(reference)]))
        added = functional.linear(encoded, self._reference_weight, embed.proj.bias)
        added[0] += functional.linear(conditioning.to(self.device), self._speaker_weight)
        return added

    @torch.inference_mode()
    def condition(self, voice: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """What a speaker and codes add to the frames of these codes.

        Args:
            voice: What `voice` gave, shape [branches, hidden].
            codes: int64, shape [codes].

        Returns:
            Shape [branches, codes * repeats, hidden].
        """
        codes = codes.to(self.device)
        embedded = self._code_table[torch.stack([codes, torch.zeros_like(codes)])]
        return voice[:, None] + embedded.repeat_interleave(self.repeats, dim=1)

    @torch.inference_mode()
    def signals(self, items: list[DenoiserInput]) -> list[torch.Tensor]:
        """What the first layer attends to, by segment; the cache policy compares these."""
        signals = []
        for item in items:
            shift, scale = self._modulations[0][item.evaluation, :2]
            hidden = item.condition + functional.linear(item.noisy, self._mel_weight)
            signals.append(_normalised(hidden) * (1 + scale) + shift)
        return signals

    @torch.inference_mode()
    def evaluate(self, items: list[DenoiserInput]) -> list[DenoiserOutput]:
        """The guided velocities of segments, each at its own time."""
        batch = _Batch(items, self.block_size, self._rates)
        packing = batch.packing
        noisy = packing.pack([item.noisy.expand(BRANCHES, -1, -1) for item in items])
        hidden = packing.pack([item.condition for item in items])
        hidden = hidden + functional.linear(noisy, self._mel_weight)
        looking_back = 0
        for layer, modulations in zip(self._layers, self._modulations, strict=True):
            backward = bool(layer.look_backward_block)
            modulation = batch.by_block(modulations)
            before = looking_back if backward else None
            hidden = self._layer(layer, hidden, modulation, batch, before)
            looking_back += backward
        scale, shift = batch.by_block(self._last_modulation).unbind(dim=1)
        hidden = _normalised(hidden) * (1 + scale[:, None]) + shift[:, None]
        outputs = packing.unpack(self._model.proj_out(hidden))
        return [
            DenoiserOutput(
                guided + (guided - free) * self._settings.guidance, tuple(batch.seen[index])
            )
            for index, (guided, free) in enumerate(outputs)
        ]

    def _layer(
        self,
        layer: DiTDecoderLayer,
        hidden: torch.Tensor,
        modulation: torch.Tensor,
        batch: _Batch,
        before: int | None,
    ) -> torch.Tensor:
        """One layer; `before` is its number among those that look back, if it does."""
        shift, scale, gate, shift_inner, scale_inner, gate_inner = (
            part[:, None] for part in modulation.unbind(dim=1)
        )
        attended = self._attend(layer, _normalised(hidden) * (1 + scale) + shift, batch, before)
        hidden = hidden + gate * attended
        return hidden + gate_inner * layer.ff(_normalised(hidden) * (1 + scale_inner) + shift_inner)

    def _attend(
        self, layer: DiTDecoderLayer, hidden: torch.Tensor, batch: _Batch, before: int | None
    ) -> torch.Tensor:
        attention = layer.attn

        def heads(projection: nn.Linear) -> torch.Tensor:
            return projection(hidden).unflatten(-1, (attention.heads, -1)).transpose(1, 2)

        query = batch.rotated(heads(attention.to_q))
        key = batch.rotated(heads(attention.to_k))
        value = heads(attention.to_v)
        if before is not None:
            batch.keep(key, value)
        ahead = bool(layer.look_ahead_block)
        attended = functional.scaled_dot_product_attention(
            query,
            batch.with_neighbours(key, 0, before, ahead),
            batch.with_neighbours(value, 1, before, ahead),
            batch.mask(before is not None, ahead),
        )
        return attention.to_out[0](attended.transpose(1, 2).flatten(-2))


def _normalised(hidden: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(hidden, hidden.shape[-1:], eps=NORM_EPSILON)


class _Batch:
    """What the layers of one evaluation share."""

    def __init__(self, items: list[DenoiserInput], block_size: int, rates: torch.Tensor) -> None:
        device = rates.device
        self.items = items
        self.packing = Packing.of([len(item.noisy) for item in items], block_size, device)
        self.seen: list[list[KeysAndValues]] = [[] for _ in items]
        packing = self.packing
        evaluations = torch.tensor([item.evaluation for item in items], device=device)
        self._evaluation_of = evaluations[packing.item_of].repeat(BRANCHES)
        self._before = branched(packing.before, packing.blocks + len(items))
        self._behind = branched(packing.behind, packing.blocks + 1)
        positions = torch.cat(
            [
                torch.arange(item.start, item.start + count * block_size, device=device)
                for item, count in zip(items, packing.counts, strict=True)
            ]
        )
        angles = positions.reshape(-1, block_size)[..., None].float() * rates.float()
        self._cosines = angles.cos().repeat(BRANCHES, 1, 1)
        self._sines = angles.sin().repeat(BRANCHES, 1, 1)

    def by_block(self, values: torch.Tensor) -> torch.Tensor:
        """Values by evaluation as values by block, of all branches."""
        return values[self._evaluation_of]

    def rotated(self, heads: torch.Tensor) -> torch.Tensor:
        """Rotary positions, interleaved, of the first head alone, as the checkpoint was trained.

        Args:
            heads: Shape [branches * blocks, heads, block size, head width].
        """
        first = heads[:, 0]
        even, odd = first[..., 0::2], first[..., 1::2]
        turned = torch.cat(
            [
                even * self._cosines - odd * self._sines,
                odd * self._cosines + even * self._sines,
            ],
            dim=-1,
        )
        return torch.cat([turned[:, None], heads[:, 1:]], dim=1)

    def keep(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Notes what the next segments will see of these."""
        packing = self.packing
        keys, values = (x.unflatten(0, (BRANCHES, packing.blocks)) for x in (key, value))
        for index, item in enumerate(self.items):
            block = packing.first_block(index) + max(item.keep // packing.block_size, 1) - 1
            self.seen[index].append((keys[:, block].clone(), values[:, block].clone()))

    def with_neighbours(
        self, blocks: torch.Tensor, part: int, before: int | None, ahead: bool
    ) -> torch.Tensor:
        """Keys (`part` 0) or values (1) of each block and of the neighbours that it sees."""
        if before is None and not ahead:
            return blocks
        own = blocks.unflatten(0, (BRANCHES, self.packing.blocks))
        nothing = torch.zeros_like(own[:, 0])
        parts = [blocks]
        if before is not None:
            kept = [item.before[before][part] if item.before else nothing for item in self.items]
            extended = torch.cat([own, torch.stack(kept, dim=1)], dim=1)
            parts.insert(0, extended.flatten(0, 1)[self._before])
        if ahead:
            extended = torch.cat([own, nothing[:, None]], dim=1)
            parts.append(extended.flatten(0, 1)[self._behind])
        return torch.cat(parts, dim=-2)

    def mask(self, backward: bool, ahead: bool) -> torch.Tensor | None:
        """Which keys each block sees, shape [branches * blocks, 1, 1, keys]; None: all."""
        packing = self.packing
        if not (backward or ahead) and packing.full:
            return None
        parts = [packing.valid]
        if backward:
            has = torch.tensor([bool(item.before) for item in self.items], device=parts[0].device)
            there = torch.cat([has.new_ones(packing.blocks), has])[packing.before]
            parts.insert(0, there[:, None].expand(-1, packing.block_size))
        if ahead:
            none = packing.valid.new_zeros(1, packing.block_size)
            parts.append(torch.cat([packing.valid, none])[packing.behind])
        return torch.cat(parts, dim=-1).repeat(BRANCHES, 1)[:, None, None]
