"""The quantisation methods that a deployment may name, and what a processor can do of them.

Needs neither torch nor vLLM, since deployments are read before either is imported.
"""

from __future__ import annotations

import difflib

METHODS = (
    "auto_awq",
    "auto_gptq",
    "awq",
    "awq_marlin",
    "compressed-tensors",
    "deepseek_v4_fp8",
    "experts_int8",
    "fp8",
    "fp8_per_block",
    "fp8_per_channel",
    "fp8_per_tensor",
    "gpt_oss_mxfp4",
    "gptq",
    "gptq_marlin",
    "humming",
    "inc",
    "int8_per_channel_weight_only",
    "modelopt",
    "modelopt_fp4",
    "modelopt_mixed",
    "modelopt_mxfp8",
    "moe_wna16",
    "mxfp4",
    "mxfp8",
    "nvfp4_per_token",
    "quark",
    "torchao",
)
"""The names of vLLM 0.32, without `online`, which needs more than a name, and deprecated ones."""

CPU_METHODS = ("auto_awq", "auto_gptq", "awq", "compressed-tensors", "gptq", "inc")
"""Those that vLLM has kernels for on a CPU. All of them read weights that were quantised before."""

CPU_SCOPE = (
    "On a CPU, vLLM runs linear layers with weights of 4 bits (GPTQ, AWQ, AutoRound, "
    "compressed-tensors) or with weights and activations of 8 bits (compressed-tensors), but no "
    "quantised experts on most"
)
"""What is told where a method is one of those, and yet does not run."""


def check_method(method: str, device: str) -> None:
    """Looks at a method's name.

    Raises:
        ValueError: vLLM does not know it, or it is none for the device.
    """
    if method not in METHODS:
        near = difflib.get_close_matches(method, METHODS, n=1, cutoff=0.0)
        raise ValueError(
            f"{method!r} is no quantization that vLLM knows; did you mean {near[0]!r}?"
        )
    if device == "cpu" and method not in CPU_METHODS:
        raise ValueError(
            f"{method!r} does not run on the stage's device 'cpu'; there vLLM runs "
            f"{', '.join(CPU_METHODS)}, each with a checkpoint that was quantised so"
        )
