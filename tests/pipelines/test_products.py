from __future__ import annotations

import pytest
import torch

from pipelines.qwen.products import PackedProduct, product_with
from tests.synchronisation import DEVICE


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 16, 33])
def test_a_product_equals_torchs_for_any_number_of_rows(rows: int) -> None:
    weight = torch.randn(48, 32, generator=torch.Generator().manual_seed(0))
    product = product_with(weight)
    assert isinstance(product, PackedProduct)
    values = torch.randn(2 * rows, 32, generator=torch.Generator().manual_seed(1))
    for some in (values[:rows], values[1::2]):
        assert torch.allclose(product(some), some @ weight.T, atol=1e-5)


def test_other_types_and_devices_are_left_to_torch() -> None:
    for weight in (torch.randn(48, 32).bfloat16(), torch.empty(48, 32, device=DEVICE)):
        product = product_with(weight)
        assert not isinstance(product, PackedProduct)
        made = product(weight.new_zeros(3, 32))
        assert made.shape == (3, 48)
        assert (made.dtype, made.device) == (weight.dtype, weight.device)
