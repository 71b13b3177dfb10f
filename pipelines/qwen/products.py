"""Products with the same matrix again and again, for a few rows at a time.

On a processor such a product is mostly reading the matrix, and its layout decides. For one or two
rows it is best read input by input; for more, oneDNN's own layout is, which vLLM packs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

Product = Callable[[torch.Tensor], torch.Tensor]
"""Shapes: [rows, inputs] -> [rows, outputs]."""

FEW_ROWS = 2
"""Rows up to which reading input by input is faster (measured with matrices of 256 and 512)."""

PRIMITIVES = 32
"""Numbers of rows that oneDNN keeps a kernel for."""


class PackedProduct:
    """A product in float32 on a processor, its matrix laid out in both ways."""

    def __init__(self, weight: torch.Tensor) -> None:
        """Packs a matrix, shape [outputs, inputs]."""
        # Imported here, since a GPU needs none of it, and torch alone may be tried there.
        from vllm import _custom_ops as ops

        self._by_input = weight.T.contiguous()
        self._packed = ops.create_onednn_mm(weight.T, PRIMITIVES)
        self._multiply = ops.onednn_mm

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Shapes: [rows, inputs] -> [rows, outputs]."""
        if len(rows) <= FEW_ROWS:
            return rows @ self._by_input
        return self._multiply(self._packed, rows, None)


def product_with(weight: torch.Tensor) -> Product:
    """The product with a matrix that stays, shape [outputs, inputs]."""
    if weight.device.type == "cpu" and weight.dtype == torch.float32:
        return PackedProduct(weight)
    return partial(functional.linear, weight=weight)
