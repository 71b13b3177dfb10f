"""What may go wrong with an engine core's quantisation, told in words that name the mend."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.fused_moe import UnquantizedFusedMoEMethod
from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.v1.engine.core import EngineCore

from engine.errors import ConfigurationError
from engine.quantization import CPU_SCOPE

LOADING_FAULTS = (NotImplementedError, ValueError, RuntimeError, AssertionError)
"""How vLLM says, while it builds the layers, that none of its kernels fits."""

UNQUANTISED = (UnquantizedLinearMethod, UnquantizedFusedMoEMethod)

LONGEST_REASON = 400
"""Characters of vLLM's reason that are told."""


def engine_config(arguments: EngineArgs) -> VllmConfig:
    """VLLM's configuration of an engine core.

    Raises:
        ConfigurationError: vLLM refuses it, or the model is quantised and would compute in float32.
    """
    try:
        config = arguments.create_engine_config()
    except ValidationError as error:
        reasons = "; ".join(fault["msg"] for fault in error.errors())
        raise ConfigurationError(_refused(arguments.model, reasons)) from error
    except ValueError as error:
        raise ConfigurationError(_refused(arguments.model, str(error))) from error
    if config.model_config.quantization is not None and arguments.dtype == "float32":
        # Of some methods vLLM says so itself, of others a kernel would, at the first step.
        raise ConfigurationError(
            f"The weights in {arguments.model} are quantised "
            f"({config.model_config.quantization}) and compute in half precision; the stage's "
            "dtype is float32. Deploy the stage with dtype: bfloat16."
        )
    return config


def _refused(model: str, reason: str) -> str:
    mend = ""
    if "is not supported for quantization method" in reason:
        mend = " Deploy the stage with dtype: bfloat16."
    elif "Cannot find the config file for" in reason or "quantization" in reason:
        mend = (
            " Leave the stage's quantization out: what a checkpoint was quantised with is found "
            "in its config.json."
        )
    return f"vLLM refuses the model in {model}: {reason}{mend}"


@contextmanager
def quantisation_faults(config: VllmConfig) -> Generator[None]:
    """Tells what fails while a quantised model is loaded as a fault of its configuration.

    Raises:
        ConfigurationError: None of vLLM's kernels for the device fits the model's layers.
    """
    try:
        yield
    except LOADING_FAULTS as fault:
        method = config.model_config.quantization
        if method is None:
            raise
        device = config.device_config.device_type
        scope = f" {CPU_SCOPE}." if device == "cpu" else ""
        raise ConfigurationError(
            f"The quantised model in {config.model_config.model} ({method}) cannot be loaded on "
            f"{device}: {str(fault)[:LONGEST_REASON]}{scope}"
        ) from fault


def require_quantised_layers(core: EngineCore, method: str) -> None:
    """Refuses a method that a model's layers took no notice of.

    Raises:
        ConfigurationError: No layer is quantised.
    """
    executor: Any = core.model_executor
    model = executor.driver_worker.get_model()
    layers = [layer for layer in model.modules() if isinstance(layer, LinearBase | RoutedExperts)]
    if all(isinstance(layer.quant_method, UNQUANTISED) for layer in layers):
        core.shutdown()
        raise ConfigurationError(
            f"No layer of this model was quantised by {method!r}; leave the stage's quantization "
            "out."
        )
