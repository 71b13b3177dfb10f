"""The transformer between the codec's quantizer and its upsampling, streamed over a window."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from pipelines.qwen3_tts.codec import DecoderSizes
from pipelines.qwen3_tts.codec_state import StateLayout, StreamStep


class WindowAttention(nn.Module):
    """Causal attention over the last `window` frames, rotary positions from the first frame."""

    def __init__(self, layout: StateLayout, sizes: DecoderSizes) -> None:
        """Reserves room for the keys and values of the window but its own frame."""
        super().__init__()
        self.heads, self.groups = sizes.heads, sizes.key_value_heads
        self.head_dim, self.kept = sizes.head_dim, sizes.window - 1
        width = self.groups * self.head_dim
        self.q_proj = nn.Linear(sizes.hidden, sizes.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(sizes.hidden, width, bias=False)
        self.v_proj = nn.Linear(sizes.hidden, width, bias=False)
        self.o_proj = nn.Linear(sizes.heads * self.head_dim, sizes.hidden, bias=False)
        self.slot = layout.reserve(2 * width, self.kept)

    def forward(
        self,
        hidden: torch.Tensor,
        turns: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        step: StreamStep,
    ) -> torch.Tensor:
        """Attends.

        Args:
            hidden: Shape [requests, time, hidden].
            turns: Cosines and sines of the positions, shape [requests, 1, time, head].
            mask: Which keys each frame may see, shape [requests, 1, time, kept + time].
            step: The requests' state; keys are kept turned.

        Returns:
            Shape of `hidden`.
        """
        requests, time, _ = hidden.shape
        query = self._by_head(self.q_proj(hidden), self.heads)
        key = turn(self._by_head(self.k_proj(hidden), self.groups), turns)
        new = [
            part.transpose(2, 3).flatten(1, 2)
            for part in (key, self._by_head(self.v_proj(hidden), self.groups))
        ]
        joined = step.extend(self.slot, torch.cat(new, dim=1), 1)
        shape = (requests, 2, self.groups, self.head_dim, self.kept + time)
        keys, values = joined.view(shape).transpose(3, 4).unbind(1)
        attended = functional.scaled_dot_product_attention(
            turn(query, turns), keys, values, attn_mask=mask, enable_gqa=self.heads != self.groups
        )
        return self.o_proj(attended.transpose(1, 2).flatten(2))

    def _by_head(self, projected: torch.Tensor, heads: int) -> torch.Tensor:
        return projected.unflatten(-1, (heads, self.head_dim)).transpose(1, 2)


def turn(values: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary position embedding over the halves of each head (arXiv:2104.09864)."""
    cosines, sines = turns
    first, second = values.chunk(2, dim=-1)
    return values * cosines + torch.cat([-second, first], dim=-1) * sines


class GatedFeedForward(nn.Module):
    """SwiGLU feed-forward."""

    def __init__(self, sizes: DecoderSizes) -> None:
        """Builds the projections."""
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.intermediate, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.intermediate, bias=False)
        self.down_proj = nn.Linear(sizes.intermediate, sizes.hidden, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Shape [requests, time, hidden] in and out."""
        return self.down_proj(functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


class LayerScale(nn.Module):
    """A factor for each channel (arXiv:2103.17239)."""

    def __init__(self, channels: int) -> None:
        """Leaves the values to the loader."""
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Shape [..., channels] in and out."""
        return self.scale * hidden


class CodecLayer(nn.Module):
    """One pre-norm layer with scaled branches."""

    def __init__(self, layout: StateLayout, sizes: DecoderSizes) -> None:
        """Builds attention, feed-forward, norms and scales."""
        super().__init__()
        self.self_attn = WindowAttention(layout, sizes)
        self.mlp = GatedFeedForward(sizes)
        self.input_layernorm = nn.RMSNorm(sizes.hidden, eps=sizes.norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(sizes.hidden, eps=sizes.norm_eps)
        self.self_attn_layer_scale = LayerScale(sizes.hidden)
        self.mlp_layer_scale = LayerScale(sizes.hidden)

    def forward(
        self,
        hidden: torch.Tensor,
        turns: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        step: StreamStep,
    ) -> torch.Tensor:
        """As `WindowAttention.forward`."""
        attended = self.self_attn(self.input_layernorm(hidden), turns, mask, step)
        hidden = hidden + self.self_attn_layer_scale(attended)
        fed = self.mlp(self.post_attention_layernorm(hidden))
        return hidden + self.mlp_layer_scale(fed)


class CodecTransformer(nn.Module):
    """All layers with their projections in and out."""

    def __init__(self, layout: StateLayout, sizes: DecoderSizes) -> None:
        """Builds the layers."""
        super().__init__()
        self.sizes = sizes
        self.input_proj = nn.Linear(sizes.latent, sizes.hidden)
        self.layers = nn.ModuleList(CodecLayer(layout, sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.hidden, eps=sizes.norm_eps)
        self.output_proj = nn.Linear(sizes.hidden, sizes.latent)

    def forward(self, latent: torch.Tensor, step: StreamStep) -> torch.Tensor:
        """Shape [requests, time, latent] in and out."""
        time = latent.shape[1]
        offsets = torch.arange(time, device=latent.device)
        turns = self._turns(step.positions[:, None] + offsets, latent.dtype)
        mask = self._mask(step.positions, offsets)
        hidden = self.input_proj(latent)
        for layer in self.layers:
            hidden = layer(hidden, turns, mask, step)
        return self.output_proj(self.norm(hidden))

    def _turns(
        self, positions: torch.Tensor, dtype: torch.dtype
    ) -> tuple[torch.Tensor, torch.Tensor]:
        width = self.sizes.head_dim
        exponents = torch.arange(0, width, 2, device=positions.device).float() / width
        angles = positions[..., None].float() * (1.0 / self.sizes.rope_theta**exponents)
        angles = torch.cat([angles, angles], dim=-1).unsqueeze(1)
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def _mask(self, positions: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Keys inside the window, none before the first frame, shape [requests, 1, time, keys]."""
        kept = self.sizes.window - 1
        keys = torch.arange(-kept, len(offsets), device=offsets.device)
        distance = offsets[:, None] - keys
        inside = (distance >= 0) & (distance < self.sizes.window)
        exists = keys >= -positions[:, None]
        return (inside & exists[:, None, :]).unsqueeze(1)
