"""Rows of concatenated utterances for training the Talker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from recipes.lark.talker_model import TalkerConfig

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Teacher-forced rows.

    Attributes:
        phonemes: [B, T, 1 + lookahead].
        previous: [B, T, codebooks] codes of the step before, begin codes at a row's start.
        codes: [B, T, codebooks].
    """

    phonemes: Tensor
    previous: Tensor
    codes: Tensor


class CodeCorpus:
    """The corpus as codes, cut into training and held-out utterances."""

    def __init__(self, path: Path, config: TalkerConfig, held_out: int = 100) -> None:
        stored = np.load(path)
        self.config = config
        self.ids = stored["ids"].astype(np.int64)
        self.codes = stored["codes"].astype(np.int64)
        self.first_codes = stored["first_codes"].astype(np.int64)
        self.offsets = stored["offsets"]
        count = len(self.offsets) - 1
        held_out = min(held_out, count // 5)
        self.training = np.arange(count - held_out)
        self.held_out = np.arange(count - held_out, count)

    def rows(
        self, utterances: IntArray, length: int, source: np.random.Generator
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield phonemes [T, 1 + lookahead] and codes [T, codebooks] of one full row each.

        A row begins with an utterance as a request does, with little silence; the utterances that
        follow in it have their pause. What does not fit into the row is dropped.
        """
        phonemes: list[IntArray] = []
        codes: list[IntArray] = []
        filled = 0
        for index, utterance in enumerate(utterances):
            start, end = self.offsets[utterance], self.offsets[utterance + 1]
            following = utterances[(index + 1) % len(utterances)]
            groups = self.codes[start:end]
            if filled == 0:
                groups = np.concatenate([self.first_codes[utterance][None], groups[1:]])
            phonemes.append(self._with_lookahead(utterance, following, source))
            codes.append(groups)
            filled += len(groups)
            if filled >= length:
                yield np.concatenate(phonemes)[:length], np.concatenate(codes)[:length]
                phonemes, codes, filled = [], [], 0

    def _with_lookahead(
        self, utterance: int, following: int, source: np.random.Generator
    ) -> IntArray:
        """Return [L, 1 + lookahead]; mostly the sentence that follows is not known yet."""
        ahead = self.config.lookahead
        ids = self.ids[self.offsets[utterance] : self.offsets[utterance + 1]]
        after = self.ids[self.offsets[following] :][:ahead]
        if source.random() < 0.9:
            after = np.zeros(0, np.int64)
        padded = np.concatenate([ids, after, np.zeros(ahead - len(after), np.int64)])
        return np.lib.stride_tricks.sliding_window_view(padded, 1 + ahead)[: len(ids)]

    def batches(
        self, rows: int, length: int, seed: int, utterances: IntArray | None = None
    ) -> Iterator[Batch]:
        """Yield batches without end, in a new order each time the corpus is used up.

        With `utterances` given, they are used once and in order.
        """
        source = np.random.default_rng(seed)
        pending: list[tuple[IntArray, IntArray]] = []
        while True:
            order = source.permutation(self.training) if utterances is None else utterances
            for row in self.rows(order, length, source):
                pending.append(row)
                if len(pending) == rows:
                    yield self._batch(pending)
                    pending = []
            if utterances is not None:
                return

    def _batch(self, rows: list[tuple[IntArray, IntArray]]) -> Batch:
        phonemes = torch.from_numpy(np.stack([row[0] for row in rows]))
        codes = torch.from_numpy(np.stack([row[1] for row in rows]))
        begin = torch.tensor(self.config.begin_codes).expand(len(rows), 1, -1)
        return Batch(phonemes, torch.cat([begin, codes[:, :-1]], 1), codes)


def corrupted(
    previous: Tensor, config: TalkerConfig, generator: torch.Generator, share: float
) -> Tensor:
    """Replace a share of history codes against exposure bias.

    Half of the share forgets a whole step (begin codes), half has single codes at random.
    """
    batch, length, books = previous.shape
    forgotten = torch.rand(batch, length, 1, generator=generator) < share / 2
    result = torch.where(forgotten, torch.tensor(config.begin_codes), previous)
    wrong = torch.rand(batch, length, books, generator=generator) < share / 2
    uniform = torch.rand(batch, length, books, generator=generator)
    random = (uniform * torch.tensor(config.codebook_sizes)).long()
    return torch.where(wrong, random, result)
