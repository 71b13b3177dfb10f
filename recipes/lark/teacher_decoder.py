"""The teacher's decoder in torch, from the dequantised weights of its ONNX file."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from recipes.lark.teacher import model_path

BLOCKS = 8


@functools.lru_cache(maxsize=1)
def _tensors() -> dict[str, Tensor]:
    """Return every initialiser of the ONNX graph as a float tensor."""
    import onnx

    graph = onnx.load(model_path()).graph
    arrays = {item.name: onnx.numpy_helper.to_array(item) for item in graph.initializer}
    return {name: torch.from_numpy(np.array(array, np.float32)) for name, array in arrays.items()}


def _dequantised(name: str) -> Tensor:
    """Return a linear layer's weight as torch keeps it, [out, in]."""
    tensors = _tensors()
    prefix = f"/{name}/Transpose_output_0"
    scale, zero = tensors[f"{prefix}_scale"], tensors[f"{prefix}_zero_point"]
    return ((tensors[f"{prefix}_quantized"] - zero) * scale).T.contiguous()


def first_layer_weight() -> Tensor:
    """Return the weight of the decoder's first convolution, [256, 130, 7]."""
    return _tensors()["m.dec_in.weight"]


def decoder_weights() -> dict[str, Tensor]:
    """Return the decoder's weights under the names of `pipelines.lark.decoder.Decoder`."""
    tensors = _tensors()
    weights = {
        "input.weight": tensors["m.dec_in.weight"],
        "input.bias": tensors["m.dec_in.bias"],
        "norm.weight": tensors["m.dec_norm.weight"],
        "norm.bias": tensors["m.dec_norm.bias"],
        "head.weight": _dequantised("head"),
        "head.bias": tensors["m.head.bias"],
    }
    for index in range(BLOCKS):
        theirs, ours = f"m.dec.{index}", f"blocks.{index}"
        weights[f"{ours}.depthwise.weight"] = tensors[f"{theirs}.dw.weight"]
        weights[f"{ours}.depthwise.bias"] = tensors[f"{theirs}.dw.bias"]
        weights[f"{ours}.norm.weight"] = tensors[f"{theirs}.norm.weight"]
        weights[f"{ours}.norm.bias"] = tensors[f"{theirs}.norm.bias"]
        weights[f"{ours}.expand.weight"] = _dequantised(f"dec.{index}/pw1")
        weights[f"{ours}.expand.bias"] = tensors[f"{theirs}.pw1.bias"]
        weights[f"{ours}.shrink.weight"] = _dequantised(f"dec.{index}/pw2")
        weights[f"{ours}.shrink.bias"] = tensors[f"{theirs}.pw2.bias"]
        weights[f"{ours}.scale"] = tensors[f"{theirs}.gamma"]
    return weights
