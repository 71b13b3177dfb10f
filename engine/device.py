"""Devices that stages run on: `cpu` and `cuda:N`, as deployments name them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from engine.errors import ConfigurationError


def require_device(device: str) -> str:
    """The type of a device that is there, `cpu` or `cuda`.

    Raises:
        ConfigurationError: It is not there, or the installed vLLM was not built for it.
    """
    # Imported here, so that what computes with torch alone needs no vLLM.
    from vllm.platforms import current_platform

    kind = torch.device(device).type
    if current_platform.device_type != kind:
        raise ConfigurationError(
            f"device is {device!r}, but the installed vLLM computes on "
            f"{current_platform.device_type}; change the deployment, or install Antiphon "
            f"with the extra {kind!r}."
        )
    return require_torch_device(device)


def require_torch_device(device: str) -> str:
    """The type of a device that torch can compute on, `cpu` or `cuda`.

    Raises:
        ConfigurationError: It is not there.
    """
    parsed = torch.device(device)
    if parsed.type == "cuda" and (parsed.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(
            f"device is {device!r}, but torch sees {torch.cuda.device_count()} CUDA devices; "
            "change the deployment."
        )
    return parsed.type


def on_device(device: str) -> AbstractContextManager[object]:
    """Makes a GPU the current one for a block, as kernels and graphs expect it; else nothing.

    The engine thread steps the cores of all GPUs in turn.
    """
    return torch.cuda.device(device) if device.startswith("cuda") else nullcontext()


def to_device(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Values of the host on a device; on a GPU without waiting, by way of pinned memory."""
    if device.type == "cpu":
        return values
    return values.pin_memory().to(device, non_blocking=True)


def to_host(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Tensors of one device on the host; for those of a GPU it is waited once.

    The GPU's other streams are not waited for.
    """
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return tensors
    copies = tuple(
        torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(
            tensor, non_blocking=True
        )
        for tensor in tensors
    )
    wait_for(tensors[0].device)
    return copies


def wait_for(device: torch.device) -> None:
    """Waits for all that was asked of a GPU's current stream."""
    torch.cuda.current_stream(device).synchronize()
