"""Muon for the weight matrices, AdamW for all else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_COEFFICIENTS = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)
"""Five odd quintic steps that push all singular values towards one."""


def orthogonalise(matrices: Tensor) -> Tensor:
    """Return the nearest semi-orthogonal matrices, about, of [N, rows, columns]."""
    tall = matrices.shape[1] > matrices.shape[2]
    value = matrices.transpose(1, 2) if tall else matrices
    value = value / (value.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for a, b, c in _COEFFICIENTS:
        gram = value @ value.transpose(1, 2)
        value = a * value + (b * gram + c * gram @ gram) @ value
    return value.transpose(1, 2) if tall else value


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised; matrices of one shape are handled together."""

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.95, decay: float = 0.05
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """Update every matrix."""
        del closure
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes[tuple(parameter.shape)].append(parameter)
            for shape, parameters in shapes.items():
                updates = orthogonalise(torch.stack([self._mixed(p, group) for p in parameters]))
                step = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["decay"])
                    parameter.add_(update, alpha=-step)

    def _mixed(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        gradient = parameter.grad
        assert gradient is not None
        state["momentum"].lerp_(gradient, 1 - group["momentum"])
        return gradient.lerp(state["momentum"], group["momentum"])


def optimizers(
    model: nn.Module, matrix_prefix: str, matrix_rate: float, rate: float
) -> list[torch.optim.Optimizer]:
    """Return Muon for the matrices below `matrix_prefix` and AdamW for the rest."""
    matrices, rest = [], []
    for name, parameter in model.named_parameters():
        chosen = matrix_rate > 0 and name.startswith(matrix_prefix) and parameter.ndim == 2
        (matrices if chosen else rest).append(parameter)
    found: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.05)
    ]
    if matrices:
        found.append(Muon(matrices, lr=matrix_rate))
    for optimizer in found:
        for group in optimizer.param_groups:
            group["base"] = group["lr"]
    return found
