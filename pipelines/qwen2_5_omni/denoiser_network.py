"""The flow-matching transformer of Token2Wav over packed blocks: a pure function of tensors.

The modules and weights are the reference's (transformers' `Qwen2_5OmniToken2WavDiTModel`); how
they are run is not. The reference attends densely over one whole utterance under a mask that only
lets blocks see their own frames and, in a few layers, a neighbour's. Here the blocks of all
segments stand in one row, so that attention costs what the mask lets through, and what a segment
sees before its first block is kept from the segment before: the keys and values of its last block.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import nn
from torch.nn import functional
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    DiTDecoderLayer,
    Qwen2_5OmniToken2WavDiTModel,
)

from pipelines.qwen2_5_omni.blocks import BRANCHES, BlockPlan

NORM_EPSILON = 1e-6


def normalised(hidden: torch.Tensor) -> torch.Tensor:
    """Layer norm without weights, over the last dimension."""
    return functional.layer_norm(hidden, hidden.shape[-1:], eps=NORM_EPSILON)


class DenoiserNetwork:
    """The transformer at a fixed set of times.

    Attributes:
        kept_shape: What a segment keeps for the next one: [layers that look back, keys and values,
            branches, heads, block size, head width].
    """

    def __init__(
        self,
        model: Qwen2_5OmniToken2WavDiTModel,
        mel_weight: torch.Tensor,
        times: torch.Tensor,
        guidance: float,
    ) -> None:
        """Prepares what depends on the time alone.

        Args:
            model: The reference's module.
            mel_weight: The flow's part of the input projection, shape [hidden, mel].
            times: The time of each evaluation, shape [evaluations].
            guidance: Weight of the difference to the unconditional velocity.
        """
        self._model = model
        self._mel_weight = mel_weight
        self._guidance = guidance
        self._layers = [cast(DiTDecoderLayer, layer) for layer in model.transformer_blocks]
        self._rates = model.rotary_embed.inv_freq
        config = model.config
        heads = config.num_attention_heads
        width = self._layers[0].attn.to_k.out_features // heads
        self.kept_shape = (
            self.look_backward_layers,
            2,
            BRANCHES,
            heads,
            config.block_size,
            width,
        )
        # The modulations of every layer at every evaluation, shape [evaluations, 6, hidden].
        embedding = functional.silu(model.time_embed(times))
        self.modulations = [
            layer.attn_norm.linear(embedding).unflatten(-1, (6, -1)) for layer in self._layers
        ]
        self._last_modulation = model.norm_out.linear(embedding).unflatten(-1, (2, -1))

    @property
    def look_backward_layers(self) -> int:
        """Layers that see the block before."""
        return sum(layer.look_backward_block for layer in self._layers)

    @property
    def look_ahead_layers(self) -> int:
        """Layers that see the block behind."""
        return sum(layer.look_ahead_block for layer in self._layers)

    def forward(
        self,
        rows: torch.Tensor,
        noisy: torch.Tensor,
        condition: torch.Tensor,
        kept: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One evaluation of every block.

        Args:
            rows: What `Packing.rows` made, int64, shape [blocks, columns].
            noisy: Where the flow is, shape [blocks, block size, mel].
            condition: Of each branch, shape [blocks, branches, block size, hidden].
            kept: What was kept of the segment before, shape [blocks, *kept_shape]; read where the
                plan says that something was.

        Returns:
            The guided velocities, shape of `noisy`, and what segments that end with each block
            would keep, shape of `kept`.
        """
        batch = _Batch(BlockPlan.of_rows(rows), kept, self._rates)
        hidden = condition + functional.linear(noisy, self._mel_weight)[:, None]
        for layer, modulations in zip(self._layers, self.modulations, strict=True):
            hidden = self._layer(layer, hidden, batch.at_evaluation(modulations), batch)
        scale, shift = batch.at_evaluation(self._last_modulation)
        output = self._model.proj_out(normalised(hidden) * (1 + scale) + shift)
        guided, free = output.unbind(1)
        return guided + (guided - free) * self._guidance, batch.seen

    def _layer(
        self,
        layer: DiTDecoderLayer,
        hidden: torch.Tensor,
        modulation: tuple[torch.Tensor, ...],
        batch: _Batch,
    ) -> torch.Tensor:
        shift, scale, gate, shift_inner, scale_inner, gate_inner = modulation
        attended = self._attend(layer, normalised(hidden) * (1 + scale) + shift, batch)
        hidden = hidden + gate * attended
        return hidden + gate_inner * layer.ff(normalised(hidden) * (1 + scale_inner) + shift_inner)

    def _attend(self, layer: DiTDecoderLayer, hidden: torch.Tensor, batch: _Batch) -> torch.Tensor:
        attention = layer.attn

        def heads(projection: nn.Linear) -> torch.Tensor:
            return projection(hidden).unflatten(-1, (attention.heads, -1)).transpose(-2, -3)

        query = batch.rotated(heads(attention.to_q))
        key = batch.rotated(heads(attention.to_k))
        value = heads(attention.to_v)
        backward, ahead = bool(layer.look_backward_block), bool(layer.look_ahead_block)
        keys, values = batch.with_neighbours(key, value, backward, ahead)
        attended = functional.scaled_dot_product_attention(
            query.flatten(0, 1),
            keys.flatten(0, 1),
            values.flatten(0, 1),
            batch.mask(backward, ahead),
        )
        attended = attended.unflatten(0, (-1, BRANCHES)).transpose(-2, -3).flatten(-2)
        return cast(torch.Tensor, attention.to_out[0](attended))


class _Batch:
    """What the layers of one evaluation share."""

    def __init__(self, plan: BlockPlan, kept: torch.Tensor, rates: torch.Tensor) -> None:
        self._plan = plan
        self._kept = kept
        self.seen = torch.empty_like(kept)
        self._looked_back = 0
        frames = torch.arange(kept.shape[-2], device=kept.device)
        angles = (plan.position[:, None] + frames)[..., None].float() * rates.float()
        self._cosines, self._sines = angles.cos()[:, None], angles.sin()[:, None]
        valid = frames < plan.frames[:, None]
        before = (plan.has_before | plan.has_kept)[:, None].expand_as(valid)
        behind = valid[plan.behind] & plan.has_behind[:, None]
        self._valid = {"before": before, "own": valid, "behind": behind}

    def at_evaluation(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Values [evaluations, parts, hidden] as parts, each [blocks, 1, 1, hidden]."""
        return values[self._plan.evaluation][:, :, None, None].unbind(1)

    def rotated(self, heads: torch.Tensor) -> torch.Tensor:
        """Rotary positions, interleaved, of the first head alone, as the checkpoint was trained.

        Args:
            heads: Shape [blocks, branches, heads, block size, head width].
        """
        first = heads[:, :, 0]
        even, odd = first[..., 0::2], first[..., 1::2]
        turned = torch.cat(
            [
                even * self._cosines - odd * self._sines,
                odd * self._cosines + even * self._sines,
            ],
            dim=-1,
        )
        return torch.cat([turned[:, :, None], heads[:, :, 1:]], dim=2)

    def with_neighbours(
        self, key: torch.Tensor, value: torch.Tensor, backward: bool, ahead: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of each block and of the neighbours that it sees.

        Layers that look back are to call it in their order: each finds its own of what was kept,
        and leaves its own for the next segment.
        """
        plan, layer = self._plan, self._looked_back
        joined = []
        for part, own in enumerate((key, value)):
            parts = [own]
            if backward:
                self.seen[:, layer, part] = own
                opens = plan.has_kept[:, None, None, None, None]
                parts.insert(0, torch.where(opens, self._kept[:, layer, part], own[plan.before]))
            if ahead:
                parts.append(own[plan.behind])
            joined.append(torch.cat(parts, dim=-2))
        self._looked_back += backward
        return joined[0], joined[1]

    def mask(self, backward: bool, ahead: bool) -> torch.Tensor:
        """Which keys each block sees, shape [blocks * branches, 1, 1, keys]."""
        valid = self._valid
        parts = [valid["before"]] * backward + [valid["own"]] + [valid["behind"]] * ahead
        return torch.cat(parts, dim=-1).repeat_interleave(BRANCHES, dim=0)[:, None, None]
