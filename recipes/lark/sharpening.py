"""A post-filter in the decoder's last layer: resonances stand out a little more.

A network that is trained on spectra predicts their middle, and so flattens what stands out; codecs
and vocoders undo that with a post-filter (J.-H. Chen and A. Gersho, "Adaptive postfiltering for
quality enhancement of coded speech", IEEE Transactions on Speech and Audio Processing 3, 1995). The
decoder's log gains come from a linear layer, so the filter is folded into that layer's weights and
costs nothing when it speaks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipelines.lark.spectrum import BINS, BRANCHES

STRENGTH = 0.1
"""How much of what lies above or below a gain's surroundings is added once more."""

WIDTH = 101
"""Bins of the surroundings, 2 kHz."""

GAINS = (0, 2, 3)
"""The branches that are log gains: harmonic, noise and free."""


def sharpened(head: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the last layer's `weight` [BRANCHES * BINS, width] and `bias` with the filter in."""
    matrix = sharpening_matrix()
    result = {}
    for name, tensor in head.items():
        rows = tensor.float().unflatten(0, (BRANCHES, BINS)).clone()
        for branch in GAINS:
            rows[branch] = matrix @ rows[branch]
        result[name] = rows.flatten(0, 1)
    return result


def sharpening_matrix() -> Tensor:
    """Return the filter over frequency, [BINS, BINS]; a flat spectrum stays as it is."""
    window = torch.hann_window(WIDTH + 2, periodic=False)[1:-1]
    window = window / window.sum()
    smooth = torch.zeros(BINS, BINS)
    for offset, weight in enumerate(window, -(WIDTH // 2)):
        columns = (torch.arange(BINS) + offset).clamp(0, BINS - 1)
        smooth[torch.arange(BINS), columns] += weight
    return (1 + STRENGTH) * torch.eye(BINS) - STRENGTH * smooth
