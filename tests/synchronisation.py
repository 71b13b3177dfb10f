"""Finds, without a GPU, where code for one would make the host wait for it.

Tensors on torch's `meta` device stand for those of a GPU: operations on them run as on any device,
but for the values. Inside `no_synchronisation` an operation that reads a value back, whose result's
shape depends on values, or that copies between host and device in a way that CUDA waits for, is an
error, and so is one that mixes devices. What CUDA does is told by the notes of
`torch.cuda.set_sync_debug_mode` and of the CUDA runtime ("API synchronization behavior"): a copy
does not wait if it is asked for as non-blocking and the host's memory is pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DEVICE = torch.device("meta")
"""Stands for a GPU."""

ops = torch.ops.aten

READS_VALUES = frozenset(
    {
        ops._local_scalar_dense,
        ops._unique2,
        ops.bincount,
        ops.equal,
        ops.is_nonzero,
        ops.masked_select,
        ops.nonzero,
        ops.nonzero_numpy,
        ops.unique_consecutive,
        ops.unique_dim,
    }
)
"""Operators that give a value, or a tensor whose shape depends on values."""

INDEXING = frozenset({ops.index, ops.index_put, ops.index_put_, ops._index_put_impl_})

FROM_LISTS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor})
"""Make tensors of Python's values, which on a GPU is a copy that is waited for."""

INDEXED = frozenset({torch.Tensor.__getitem__, torch.Tensor.__setitem__})


class SynchronisationError(AssertionError):
    """The host would wait for the GPU."""


class _Pinned:
    """Which of the host's memory counts as pinned."""

    def __init__(self) -> None:
        self._addresses: set[int] = set()
        self._kept: list[torch.Tensor] = []

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        """Counts a tensor's memory; it is kept, so that no other takes its place."""
        self._kept.append(tensor)
        self._addresses.add(tensor.untyped_storage().data_ptr())
        return tensor

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self._addresses


class _FunctionMode(TorchFunctionMode):
    """Sees what torch does before it dispatches: tensors of lists."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in INDEXED and args[0].device == DEVICE:
            places = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(isinstance(place, (list, np.ndarray)) for place in places):
                raise SynchronisationError(f"indexing by {args[1]!r} copies it to the device")
        result = func(*args, **kwargs)
        if func in FROM_LISTS and result is not args[0] and result.device == DEVICE:
            raise SynchronisationError(f"{func.__name__} copies {args[0]!r} to the device")
        return result


class _DispatchMode(TorchDispatchMode):
    """Sees every operator."""

    def __init__(self) -> None:
        super().__init__()
        self.pinned = _Pinned()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        with self:
            # In inference mode operators come here that are made of others.
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        operator = func.overloadpacket
        if operator is ops.is_pinned:
            return args[0] in self.pinned
        if operator is ops._pin_memory:
            return self.pinned.add(args[0].clone())
        if kwargs.get("pin_memory"):
            return self.pinned.add(func(*args, **{**kwargs, "pin_memory": False}))
        if operator is ops._to_copy:
            return self._moved(func, args[0], kwargs)
        if not any(tensor.device == DEVICE for tensor in tensors):
            return func(*args, **kwargs)
        if operator is ops.copy_:
            return self._copied(func, args, kwargs)
        _refuse_reading(func, operator, args, kwargs)
        _refuse_mixture(func, tensors)
        if "generator" in kwargs:
            # No generator of a GPU can be had here; nothing is drawn anyway.
            kwargs = {**kwargs, "generator": None}
        return func(*args, **kwargs)

    def _moved(self, func: Any, source: torch.Tensor, kwargs: dict[str, Any]) -> Any:
        target = torch.device(kwargs.get("device") or source.device)
        if target == source.device:
            return func(source, **kwargs)
        waits = not kwargs.get("non_blocking", False)
        if source.device == DEVICE:
            if waits:
                raise SynchronisationError(f"a copy of {_named(source)} to the host is waited for")
            # Torch takes pinned memory for it.
            dtype = kwargs.get("dtype") or source.dtype
            return self.pinned.add(torch.zeros(source.shape, dtype=dtype))
        self._require_free(source, waits)
        return func(source, **kwargs)

    def _copied(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target, source = args[0], args[1]
        waits = not (kwargs.get("non_blocking", False) or (len(args) > 2 and args[2]))
        if target.device == source.device:
            return func(*args, **kwargs)
        if target.device == DEVICE:
            self._require_free(source, waits)
            return func(*args, **kwargs)
        self._require_free(target, waits)
        return target.zero_()

    def _require_free(self, host: torch.Tensor, waits: bool) -> None:
        if waits:
            raise SynchronisationError(f"a copy of {_named(host)} is waited for")
        if host not in self.pinned:
            raise SynchronisationError(f"a copy of {_named(host)}, which is not pinned, waits")


def _refuse_reading(
    func: Any, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if operator in READS_VALUES:
        raise SynchronisationError(f"{func} reads values of the device")
    if func is ops.repeat_interleave.Tensor and kwargs.get("output_size") is None:
        raise SynchronisationError(f"{func} needs its output_size")
    if operator not in INDEXING:
        return
    for index in args[1]:
        if index is None:
            continue
        if index.dtype in (torch.bool, torch.uint8) and operator is ops.index:
            raise SynchronisationError(f"{func} by a mask needs to know how much it chooses")
        if index.device != DEVICE:
            raise SynchronisationError(f"{func} copies {_named(index)} to the device")


def _refuse_mixture(func: Any, tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        # A single value of the host goes with the launch of the kernel.
        if tensor.device != DEVICE and tensor.dim() > 0:
            raise SynchronisationError(f"{func} mixes the device with {_named(tensor)} of the host")


def _named(tensor: torch.Tensor) -> str:
    return f"a {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} tensor"


@contextmanager
def no_synchronisation() -> Generator[None]:
    """What runs inside must not make the host wait for tensors on `DEVICE`."""
    # Where vLLM is built for processors, it makes a tensor's `pin_memory` do nothing.
    pinning = mock.patch.object(torch.Tensor, "pin_memory", torch._C.TensorBase.pin_memory)
    with pinning, _FunctionMode(), _DispatchMode():
        yield
