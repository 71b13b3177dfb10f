"""The post-filter in the decoder's last layer."""

from __future__ import annotations

import torch

from pipelines.lark.spectrum import BINS, BRANCHES
from recipes.lark.sharpening import GAINS, STRENGTH, sharpened, sharpening_matrix


def test_a_flat_spectrum_stays_as_it_is() -> None:
    flat = torch.full((BINS,), 2.5)
    torch.testing.assert_close(sharpening_matrix() @ flat, flat, rtol=0, atol=1e-4)


def test_a_resonance_stands_out_a_little_more() -> None:
    spectrum = torch.zeros(BINS)
    spectrum[300] = 1.0
    filtered = sharpening_matrix() @ spectrum
    assert 1.0 < filtered[300] < 1.0 + STRENGTH
    assert (filtered[260:300] <= 0).all()
    assert filtered[100].abs() < 1e-6


def test_only_gains_are_filtered() -> None:
    head = {"weight": torch.randn(BRANCHES * BINS, 4), "bias": torch.randn(BRANCHES * BINS)}
    result = sharpened(head)
    for name, before in head.items():
        rows = before.unflatten(0, (BRANCHES, BINS))
        after = result[name].unflatten(0, (BRANCHES, BINS))
        for branch in range(BRANCHES):
            assert torch.equal(rows[branch], after[branch]) is (branch not in GAINS)
