"""What finds synchronisation finds each kind of it, and lets through what does not wait."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.synchronisation import DEVICE, SynchronisationError, no_synchronisation

Step = Callable[[torch.Tensor], object]


def assigned(values: torch.Tensor) -> None:
    values[:, 1:] = torch.ones(3, 3)


WAITING: dict[str, tuple[Step, str]] = {
    "item": (lambda x: x.sum().item(), "reads values"),
    "condition": (lambda x: 1 if (x > 0).any() else 0, "reads values"),
    "list": (lambda x: x.tolist(), "to the host is waited for"),
    "to the host": (lambda x: x.cpu(), "to the host is waited for"),
    "nonzero": (lambda x: x.nonzero(), "reads values"),
    "where": (lambda x: torch.where(x > 0), "reads values"),
    "mask": (lambda x: x[x > 0], "by a mask"),
    "list as index": (lambda x: x[[0, 2]], "to the device"),
    "host's index": (lambda x: x[torch.tensor([0, 2])], "to the device"),
    "unique": (lambda x: x.unique(), "reads values"),
    "equal": (lambda x: torch.equal(x, x), "reads values"),
    "repeats": (lambda x: x.repeat_interleave(x[:, 0].long(), dim=0), "output_size"),
    "tensor of a list": (lambda x: torch.tensor([1, 2], device=x.device), "to the device"),
    "new tensor": (lambda x: x.new_tensor([1, 2]), "to the device"),
    "array": (lambda x: torch.as_tensor(np.ones(2), device=x.device), "is waited for"),
    "from the host": (lambda x: torch.ones(3).to(x.device), "is waited for"),
    "from pageable memory": (
        lambda x: torch.ones(3).to(x.device, non_blocking=True),
        "not pinned",
    ),
    "blocking copy": (lambda x: x.copy_(torch.ones(3, 4).pin_memory()), "is waited for"),
    "to pageable memory": (lambda x: torch.ones(3, 4).copy_(x, non_blocking=True), "not pinned"),
    "host's values": (assigned, "is waited for"),
    "mixture": (lambda x: x + torch.ones(3, 4), "mixes"),
    "mixed parts": (lambda x: torch.cat([x, torch.ones(3, 4)]), "mixes"),
}

FREE: dict[str, Step] = {
    "pinned": lambda x: torch.ones(3).pin_memory().to(x.device, non_blocking=True),
    "pinned buffer": lambda x: x.copy_(torch.empty(3, 4, pin_memory=True), non_blocking=True),
    "part of a pinned buffer": lambda x: x[:2].copy_(
        torch.empty(3, 4, pin_memory=True)[:2], non_blocking=True
    ),
    "to the host later": lambda x: x.to("cpu", non_blocking=True),
    "to a pinned buffer": lambda x: torch.empty(3, 4, pin_memory=True).copy_(x, non_blocking=True),
    "number": lambda x: x.masked_fill(x > 0, -torch.inf) + 1.0,
    "value of the host": lambda x: x * torch.tensor(3.0),
    "index": lambda x: x[x[:, 0].long()],
    "noise": lambda x: x.exponential_(generator=torch.Generator()),
    "host's own work": lambda x: torch.ones(3)[torch.ones(3) > 0].sum().item(),
    "shape": lambda x: len(x) + x.shape[1],
    "dtype": lambda x: x.to(torch.float16),
}


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("name", WAITING)
def test_what_waits_is_found(name: str, inference: bool) -> None:
    step, message = WAITING[name]
    with torch.inference_mode(inference):
        values = torch.empty(3, 4, device=DEVICE)
        with pytest.raises(SynchronisationError, match=message), no_synchronisation():
            step(values)


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("name", FREE)
def test_what_does_not_wait_is_let_through(name: str, inference: bool) -> None:
    with torch.inference_mode(inference):
        values = torch.empty(3, 4, device=DEVICE)
        with no_synchronisation():
            FREE[name](values)
