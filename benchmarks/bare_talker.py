"""The Talker in bare eager torch, stepping a whole batch: what the engine is measured against."""

from __future__ import annotations

import torch
from torch import Tensor

from recipes.lark.talker_model import Cache, Talker


class BareTalker:
    """The reference modules with a key-value cache, greedy, every request at the same position."""

    def __init__(self, model: Talker, batch: int) -> None:
        """Starts `batch` requests."""
        self.model = model
        self.caches = [Cache() for _ in range(model.config.num_hidden_layers)]
        self.voice = torch.zeros(batch, dtype=torch.long)
        self.previous = torch.tensor(model.config.begin_codes).expand(batch, 1, -1)
        self.position = 0

    def step(self, phonemes: Tensor) -> Tensor:
        """One step of every request.

        Args:
            phonemes: int64, shape [batch, 1 + lookahead].

        Returns:
            Codes, shape [batch, codebooks].
        """
        model = self.model
        embedded = model.model.embed(phonemes[:, None], self.voice, self.previous)
        positions = torch.tensor([self.position])
        hidden = model.model(embedded, positions, None, self.caches)[:, 0]
        durations = model.config.codebook_sizes[0]
        codes = [model.lm_head(hidden)[:, :durations].argmax(-1)]
        told = torch.zeros_like(hidden)
        for index, table in enumerate(model.predictor.embedding):
            told = told + table(codes[-1])
            codes.append(model.predictor.logits(index, hidden, told).argmax(-1))
        result = torch.stack(codes, 1)
        self.previous = result[:, None]
        self.position += 1
        return result
