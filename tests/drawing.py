"""Whether what a pipeline draws has the distribution that the reference draws from.

The reference generates, but draws what our pipeline has drawn before it, request by request; so
it says at every step, behind the same beginning, which probabilities it would have drawn from,
after all of its own processors. By these the draws are made uniform numbers (the probability
integral transform, randomised within a token's probability), whatever came before, and these are
held to a uniform distribution by the chi-squared test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import chisquare

NOTHING = -1
"""In draws: the request had ended before."""

IMPOSSIBLE = -1.0
"""In uniform numbers: what the reference never draws was drawn."""

BINS = 20

Draws = npt.NDArray[np.int64]
Uniform = npt.NDArray[np.float64]


@dataclass
class ForcedDraws:
    """Takes the place of `torch.multinomial` and keeps what it was to draw from.

    Attributes:
        draws: What is drawn, one after the other, each of shape [requests].
        probabilities: What it was to be drawn from, each of shape [requests, tokens].
    """

    draws: Sequence[Draws]
    probabilities: list[npt.NDArray[np.float64]] = field(default_factory=list)

    def __call__(self, probabilities: torch.Tensor, num_samples: int, **_: Any) -> torch.Tensor:
        assert num_samples == 1
        draws = self.draws[len(self.probabilities)]
        assert len(draws) == len(probabilities)
        self.probabilities.append(probabilities.double().numpy())
        return torch.from_numpy(draws).clamp(min=0)[:, None]

    def uniform(self, places: Sequence[int], repeated: bool = False) -> Uniform:
        """Uniform numbers of the draws at some places, if the probabilities are theirs.

        Args:
            places: Of the draws.
            repeated: Whether tokens that were drawn at an earlier one of these places come first
                in each distribution, the rest by probability: so a penalty for repetition shows.

        Returns:
            In [0, 1]; IMPOSSIBLE for what has no probability.
        """
        noise = np.random.default_rng(0)
        made: list[Uniform] = []
        for index, place in enumerate(places):
            draws, probabilities = self.draws[place], self.probabilities[place]
            ranks = probabilities.copy()
            if repeated:
                for earlier in places[:index]:
                    before = self.draws[earlier]
                    drawn = before != NOTHING
                    ranks[drawn, before[drawn]] += 1
            order = np.argsort(-ranks, axis=1, kind="stable")
            below = np.cumsum(np.take_along_axis(probabilities, order, 1), 1)
            position = (order == draws[:, None]).argmax(1)
            rows = np.arange(len(draws))
            chosen = probabilities[rows, draws]
            within = below[rows, position] - noise.random(len(draws)) * chosen
            numbers = np.where(chosen > 0, within, IMPOSSIBLE)
            made.append(numbers[draws != NOTHING])
        return np.concatenate(made)


def likelihood(numbers: Uniform) -> float:
    """How likely numbers as uneven as these are, if they are uniform."""
    if (numbers == IMPOSSIBLE).any():
        return 0.0
    counts, _ = np.histogram(numbers, BINS, (0.0, 1.0))
    assert counts.sum() >= 50 * BINS, "too few numbers to tell"
    return float(chisquare(counts).pvalue)
