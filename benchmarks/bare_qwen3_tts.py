"""The Talker of a Qwen3-TTS checkpoint in bare eager torch: what an engine's step is measured by.

It does what a step must do (embed a text token and the frame before, run the backbone over a cache
of keys and values, choose a token, complete the frame's codes one codebook after the other) with
torch's own operators, and none of an engine's bookkeeping.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import functional

RESERVED = 1024


def rotary(positions: int, width: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of all positions, shape [positions, width]."""
    frequencies = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    angles = torch.arange(positions).float()[:, None] * frequencies
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


class BareTransformer:
    """Qwen3 layers over a dense cache."""

    def __init__(
        self, weights: dict[str, torch.Tensor], prefix: str, config: dict[str, Any], room: int
    ) -> None:
        """Takes the layers under a prefix; `room` positions fit the cache."""
        self.weights, self.prefix, self.config = weights, prefix, config
        self.head = config["head_dim"]
        self.heads, self.groups = config["num_attention_heads"], config["num_key_value_heads"]
        self.cosines, self.sines = rotary(room, self.head, config["rope_theta"])
        self.room = room

    def cache(self, batch: int) -> torch.Tensor:
        """An empty cache, shape [layers, 2, batch, groups, room, head]."""
        layers = self.config["num_hidden_layers"]
        return torch.zeros(layers, 2, batch, self.groups, self.room, self.head)

    def _norm(self, values: torch.Tensor, name: str) -> torch.Tensor:
        weight = self.weights[f"{self.prefix}.{name}.weight"]
        return functional.rms_norm(values, weight.shape, weight, self.config["rms_norm_eps"])

    def _linear(self, values: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(values, self.weights[f"{self.prefix}.{name}.weight"])

    def forward(self, hidden: torch.Tensor, cache: torch.Tensor, filled: int) -> torch.Tensor:
        """Shape [batch, new, hidden] in and out; the cache gets the new positions."""
        batch, new, _ = hidden.shape
        stop = filled + new
        cosines, sines = self.cosines[filled:stop], self.sines[filled:stop]

        def turned(values: torch.Tensor) -> torch.Tensor:
            first, second = values.chunk(2, dim=-1)
            return values * cosines + torch.cat([-second, first], dim=-1) * sines

        for index in range(self.config["num_hidden_layers"]):
            layer = f"layers.{index}"
            normed = self._norm(hidden, f"{layer}.input_layernorm")

            def part(name: str, count: int, of: torch.Tensor = normed, at: str = layer) -> Any:
                projected = self._linear(of, f"{at}.self_attn.{name}")
                return projected.view(batch, new, count, self.head).transpose(1, 2)

            query = turned(self._norm(part("q_proj", self.heads), f"{layer}.self_attn.q_norm"))
            key = turned(self._norm(part("k_proj", self.groups), f"{layer}.self_attn.k_norm"))
            cache[index, 0, :, :, filled:stop] = key
            cache[index, 1, :, :, filled:stop] = part("v_proj", self.groups)
            mask = None if new == 1 else torch.ones(new, stop, dtype=torch.bool).tril(filled)
            attended = functional.scaled_dot_product_attention(
                query,
                cache[index, 0, :, :, :stop],
                cache[index, 1, :, :, :stop],
                attn_mask=mask,
                enable_gqa=True,
            )
            attended = attended.transpose(1, 2).reshape(batch, new, -1)
            hidden = hidden + self._linear(attended, f"{layer}.self_attn.o_proj")
            normed = self._norm(hidden, f"{layer}.post_attention_layernorm")
            gate = functional.silu(self._linear(normed, f"{layer}.mlp.gate_proj"))
            fed = gate * self._linear(normed, f"{layer}.mlp.up_proj")
            hidden = hidden + self._linear(fed, f"{layer}.mlp.down_proj")
        return self._norm(hidden, "norm")


class BareQwen3TTS:
    """A batch of requests of equal length."""

    def __init__(self, folder: Path, batch: int, room: int) -> None:
        """Loads a checkpoint whose code predictor is as wide as its Talker."""
        config = json.loads((folder / "config.json").read_text())
        weights: dict[str, torch.Tensor] = {}
        for path in sorted(folder.glob("*.safetensors")):
            weights |= load_file(path)
        self.talker_config = config["talker_config"]
        self.codebooks = self.talker_config["num_code_groups"]
        self.weights = weights
        self.talker = BareTransformer(weights, "talker.model", self.talker_config, room)
        predictor = self.talker_config["code_predictor_config"]
        prefix = "talker.code_predictor.model"
        self.predictor = BareTransformer(weights, prefix, predictor, self.codebooks)
        self.cache = self.talker.cache(batch)
        self.codes = torch.zeros(batch, self.codebooks, dtype=torch.long)
        self.filled = 0
        never = torch.zeros(self.talker_config["vocab_size"], dtype=torch.bool)
        never[-RESERVED:] = True
        self.never = never

    def _embed(self, codebook: int, codes: torch.Tensor) -> torch.Tensor:
        name = "talker.model.codec_embedding.weight"
        if codebook:
            name = f"talker.code_predictor.model.codec_embedding.{codebook - 1}.weight"
        return functional.embedding(codes, self.weights[name])

    def _spoken(self, text: torch.Tensor) -> torch.Tensor:
        values = functional.embedding(text, self.weights["talker.model.text_embedding.weight"])
        for name, act in (("linear_fc1", True), ("linear_fc2", False)):
            weight = self.weights[f"talker.text_projection.{name}.weight"]
            bias = self.weights[f"talker.text_projection.{name}.bias"]
            values = functional.linear(values, weight, bias)
            values = functional.silu(values) if act else values
        return values

    def step(self, text: torch.Tensor) -> torch.Tensor:
        """One frame of every request, int64, shape [batch, codebooks].

        Args:
            text: Text tokens, shape [batch].
        """
        heard = [self._embed(book, self.codes[:, book]) for book in range(self.codebooks)]
        inputs = torch.stack(heard, dim=1).sum(dim=1) + self._spoken(text)
        state = self.talker.forward(inputs[:, None], self.cache, self.filled)
        self.filled += 1
        logits = functional.linear(state[:, -1], self.weights["talker.codec_head.weight"])
        token = logits.masked_fill(self.never, -torch.inf).argmax(dim=-1)
        self.codes = self._complete(state[:, -1], token)
        return self.codes

    def _complete(self, state: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        cache = self.predictor.cache(len(token))
        codes = [token]
        inputs = torch.stack([state, self._embed(0, token)], dim=1)
        filled = 0
        for book in range(1, self.codebooks):
            made = self.predictor.forward(inputs, cache, filled)[:, -1]
            filled += inputs.shape[1]
            head = self.weights[f"talker.code_predictor.lm_head.{book - 1}.weight"]
            codes.append(functional.linear(made, head).argmax(dim=-1))
            inputs = self._embed(book, codes[-1])[:, None]
        return torch.stack(codes, dim=1)
