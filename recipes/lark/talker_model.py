"""The Talker in plain torch: for training, and as the reference of the served model.

The parameters carry the names of the exported checkpoint, so that one `state_dict` serves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class TalkerConfig:
    """Sizes of the Talker; `begin_token` is the row that stands for 'no code yet'."""

    hidden_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    intermediate_size: int = 640
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    sliding_window: int = 128
    max_position_embeddings: int = 131072
    vocab_size: int = 64
    begin_token: int = 32
    phoneme_vocabulary: int = 178
    lookahead: int = 4
    codebook_sizes: tuple[int, ...] = (32, 512, 256, 512, 512)
    predictor_hidden_size: int = 512
    num_voices: int = 8

    @property
    def begin_codes(self) -> tuple[int, ...]:
        """The begin row of every code embedding."""
        return (self.begin_token, *self.codebook_sizes[1:])


def rotate(values: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Apply rotary embedding in the half-split layout.

    Args:
        values: [B, heads, T, head_dim].
        positions: [T].
        theta: base of the frequencies.
    """
    half = values.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = positions[:, None].float() * frequencies.to(positions.device)
    cosine, sine = angles.cos(), angles.sin()
    first, second = values[..., :half], values[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


@dataclass
class Cache:
    """Keys and values of the last positions of one layer, [B, heads, T, head_dim] each."""

    key: Tensor | None = None
    value: Tensor | None = None

    def extend(self, key: Tensor, value: Tensor, window: int) -> tuple[Tensor, Tensor]:
        """Append new positions and return the last `window` of all."""
        if self.key is not None and self.value is not None:
            key, value = torch.cat([self.key, key], 2), torch.cat([self.value, value], 2)
        self.key, self.value = key[:, :, -window:], value[:, :, -window:]
        return self.key, self.value


class Attention(nn.Module):
    """Grouped-query attention with QK-norm and a sliding window."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        query = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, query, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(query, config.hidden_size, bias=False)
        self.q_norm = nn.RMSNorm(config.head_dim, eps=config.rms_norm_eps)
        self.k_norm = nn.RMSNorm(config.head_dim, eps=config.rms_norm_eps)

    def forward(
        self, hidden: Tensor, positions: Tensor, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        """Return [B, T, hidden]; with a cache T is 1 and the mask is not needed."""
        batch, length, _ = hidden.shape
        shape = (batch, length, -1, self.config.head_dim)
        query = self.q_norm(self.q_proj(hidden).view(shape)).transpose(1, 2)
        key = self.k_norm(self.k_proj(hidden).view(shape)).transpose(1, 2)
        value = self.v_proj(hidden).view(shape).transpose(1, 2)
        query = rotate(query, positions, self.config.rope_theta)
        key = rotate(key, positions, self.config.rope_theta)
        if cache is not None:
            key, value = cache.extend(key, value, self.config.sliding_window)
        groups = self.config.num_attention_heads // self.config.num_key_value_heads
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        output = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        projected: Tensor = self.o_proj(output.transpose(1, 2).reshape(batch, length, -1))
        return projected


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return [B, T, hidden]."""
        output: Tensor = self.down_proj(
            functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden)
        )
        return output


class Layer(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = FeedForward(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self, hidden: Tensor, positions: Tensor, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        """Return [B, T, hidden]."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), positions, mask, cache)
        output: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return output


class Backbone(nn.Module):
    """Embeddings, layers and the final norm."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.phoneme_embedding = nn.Embedding(config.phoneme_vocabulary, size)
        self.lookahead_embedding = nn.ModuleList(
            nn.Embedding(config.phoneme_vocabulary, size) for _ in range(config.lookahead)
        )
        self.voice_embedding = nn.Embedding(config.num_voices, size)
        rows = [config.vocab_size, *(count + 1 for count in config.codebook_sizes[1:])]
        self.code_embedding = nn.ModuleList(nn.Embedding(count, size) for count in rows)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(size, eps=config.rms_norm_eps)

    def embed(self, phonemes: Tensor, voice: Tensor, previous: Tensor) -> Tensor:
        """Return step inputs [B, T, hidden].

        Args:
            phonemes: [B, T, 1 + lookahead] each step's phoneme and those that follow it.
            voice: [B].
            previous: [B, T, codebooks] codes of the step before, or the begin codes.
        """
        total = self.phoneme_embedding(phonemes[..., 0]) + self.voice_embedding(voice)[:, None]
        for index, table in enumerate(self.lookahead_embedding):
            total = total + table(phonemes[..., 1 + index])
        for index, table in enumerate(self.code_embedding):
            total = total + table(previous[..., index])
        return total

    def forward(
        self,
        hidden: Tensor,
        positions: Tensor,
        mask: Tensor | None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Return the last layer's states, [B, T, hidden]."""
        for index, layer in enumerate(self.layers):
            hidden = layer(hidden, positions, mask, caches[index] if caches else None)
        output: Tensor = self.norm(hidden)
        return output


class Predictor(nn.Module):
    """Small nets for the codebooks after the first, each told the codes before it."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        sizes, width = config.codebook_sizes, config.predictor_hidden_size
        self.embedding = nn.ModuleList(nn.Embedding(n, config.hidden_size) for n in sizes[:-1])
        self.input = nn.ModuleList(nn.Linear(2 * config.hidden_size, width) for _ in sizes[1:])
        self.output = nn.ModuleList(nn.Linear(width, n) for n in sizes[1:])

    def logits(self, index: int, hidden: Tensor, told: Tensor) -> Tensor:
        """Return logits of codebook `index` + 1 from states and summed code embeddings."""
        state = functional.silu(self.input[index](torch.cat([hidden, told], -1)))
        output: Tensor = self.output[index](state)
        return output


class Talker(nn.Module):
    """The whole model."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Backbone(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.predictor = Predictor(config)

    def forward(
        self, phonemes: Tensor, voice: Tensor, previous: Tensor, codes: Tensor, mask: Tensor
    ) -> list[Tensor]:
        """Return logits of every codebook under teacher forcing, [B, T, size] each.

        Args:
            phonemes: [B, T, 1 + lookahead].
            voice: [B].
            previous: [B, T, codebooks] history codes, as the model is to see them.
            codes: [B, T, codebooks] the right codes.
            mask: [T, T] true where a step may attend.
        """
        positions = torch.arange(phonemes.shape[1], device=phonemes.device)
        hidden = self.model(self.model.embed(phonemes, voice, previous), positions, mask)
        logits = [self.lm_head(hidden)]
        told = torch.zeros_like(hidden)
        for index, table in enumerate(self.predictor.embedding):
            told = told + table(codes[..., index])
            logits.append(self.predictor.logits(index, hidden, told))
        return logits


def window_mask(length: int, window: int) -> Tensor:
    """Return [T, T] true where query t may see key s: t - window < s <= t."""
    distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    return (distance >= 0) & (distance < window)


def with_lookahead(ids: Tensor, lookahead: int) -> Tensor:
    """Return [T, 1 + lookahead] phonemes with those that follow, 0 beyond the end."""
    padded = torch.cat([ids, ids.new_zeros(lookahead)])
    return padded.unfold(0, 1 + lookahead, 1)


@dataclass
class Sampler:
    """Free-running generation, one request, one step a phoneme."""

    model: Talker
    voice: int = 0
    temperature: float = 0.0
    seed: int = 0
    caches: list[Cache] = field(init=False)
    position: int = field(init=False, default=0)
    previous: Tensor = field(init=False)

    def __post_init__(self) -> None:
        config = self.model.config
        self.caches = [Cache() for _ in range(config.num_hidden_layers)]
        self.previous = torch.tensor(config.begin_codes)
        self.generator = torch.Generator().manual_seed(self.seed)

    @torch.inference_mode()
    def step(self, phonemes: Tensor) -> Tensor:
        """Return the codes [codebooks] of one step from its phonemes [1 + lookahead]."""
        model = self.model
        voice = torch.tensor([self.voice])
        embedded = model.model.embed(phonemes[None, None], voice, self.previous[None, None])
        hidden = model.model(embedded, torch.tensor([self.position]), None, self.caches)[0, 0]
        codes = [self._choose(model.lm_head(hidden)[: model.config.codebook_sizes[0]])]
        told = torch.zeros_like(hidden)
        for index, table in enumerate(model.predictor.embedding):
            told = told + table(codes[-1])
            codes.append(self._choose(model.predictor.logits(index, hidden, told)))
        self.previous = torch.stack(codes)
        self.position += 1
        return self.previous

    def generate(self, ids: Sequence[int]) -> Tensor:
        """Return the codes [L, codebooks] of phoneme ids [L]; may be called again to go on."""
        steps = with_lookahead(torch.tensor(list(ids)), self.model.config.lookahead)
        return torch.stack([self.step(phonemes) for phonemes in steps])

    def _choose(self, logits: Tensor) -> Tensor:
        if self.temperature <= 0:
            return logits.argmax()
        weights = torch.softmax(logits / self.temperature, -1)
        return torch.multinomial(weights, 1, generator=self.generator)[0]
