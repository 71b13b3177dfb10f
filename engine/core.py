"""Building vLLM engine cores that run in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import PretrainedConfig
from vllm.config import CompilationConfig, VllmConfig
from vllm.config.compilation import CompilationMode, CUDAGraphMode
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.engine.core import EngineCore
from vllm.v1.executor import Executor

from engine import process_groups
from engine.code_graphs import BATCH_SIZES_KEY
from engine.compile_backend import BACKEND, build_settings
from engine.compiled import Dtype, marker, resolve_dtype
from engine.deploy_config import StageDeployment
from engine.device import require_device
from engine.faults import STAGE_FAULTS
from engine.hidden_states import LAYER_KEY
from engine.part_loader import LOAD_FORMAT, PREFIXES
from engine.quantised_core import (
    engine_config,
    quantisation_faults,
    require_quantised_layers,
)
from engine.scheduler import OmniARScheduler

logger = logging.getLogger(__name__)

BLOCK_SIZE = 32
"""Positions in one block of the KV cache: whole blocks are shared, so small ones share more."""

Configure = Callable[[PretrainedConfig], PretrainedConfig]

NO_MEDIA = {"audio": 0, "image": 0, "video": 0}
"""The modalities that vLLM knows; encoders of those that are not wanted are not loaded."""


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """How an engine core is built. Sizes are per replica.

    Attributes:
        model: Folder of the checkpoint.
        conditioned: Whether each step is conditioned on a row from outside.
        dtype: torch dtype name of weights and activations; `auto` takes bfloat16 where the
            processor computes in it natively and float32 elsewhere.
        max_requests: The most requests in one batch.
        max_steps: The longest sequence, prompt and output together.
        max_step_tokens: The most positions in one step.
        key_value_cache_bytes: Memory for the paged KV cache.
        compile: See `StageDeployment.compile`.
        input_limit: How many rows a conditioned request may have ahead of its steps.
        device: `cpu` or `cuda:N`.
        cuda_graphs: Of a conditioned model: see `StageDeployment.cuda_graphs`.
        quantization: See `StageDeployment.quantization`.
        hidden_layer: Of a text model: the layer whose states may be asked for (see
            `engine.hidden_states`), counted from 1, or FINAL_LAYER; None: no states are kept.
        media: Of a text model with encoders: the most items of each modality in a prompt.
        weights: What the names of the weights begin with that are read, in a checkpoint of several
            models; empty: all are.
        configure: Makes the configuration that vLLM is to see (another architecture, a part of a
            checkpoint of several models) of the one in the folder; None: it is seen as it is.
    """

    model: Path
    conditioned: bool = True
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "float32"
    max_requests: int = 16
    max_steps: int = 32768
    max_step_tokens: int = 2048
    key_value_cache_bytes: int = 256 * 2**20
    compile: Literal["auto", "always", "never"] = "never"
    input_limit: int = 64
    device: str = "cpu"
    cuda_graphs: tuple[int, ...] = ()
    quantization: str | None = None
    hidden_layer: int | None = None
    media: Mapping[str, int] = field(default_factory=dict)
    weights: tuple[str, ...] = ()
    configure: Configure | None = None

    @classmethod
    def of(
        cls,
        folder: Path,
        deployment: StageDeployment,
        *,
        conditioned: bool,
        hidden_layer: int | None = None,
        media: Mapping[str, int] | None = None,
        weights: tuple[str, ...] = (),
        configure: Configure | None = None,
    ) -> CoreSettings:
        """The settings of a model that a deployment asks for."""
        return cls(
            model=folder,
            conditioned=conditioned,
            dtype=deployment.dtype,
            max_requests=deployment.max_requests,
            max_steps=deployment.max_steps,
            max_step_tokens=deployment.max_step_tokens,
            key_value_cache_bytes=deployment.key_value_cache_bytes,
            compile=deployment.compile,
            input_limit=deployment.input_limit,
            device=deployment.device,
            cuda_graphs=tuple(deployment.cuda_graphs),
            quantization=deployment.quantization,
            hidden_layer=hidden_layer,
            media=media or {},
            weights=weights,
            configure=configure,
        )


CONDITIONED_WORKERS = {
    "cpu": "engine.runner.OmniCPUWorker",
    "cuda": "engine.gpu_worker.OmniGPUWorker",
}
"""The workers of conditioned stages, by the type of their device."""

TEXT_WORKERS = {"cpu": "engine.text_runner.TextCPUWorker", "cuda": "auto"}
"""The workers of other text stages, by the type of their device; `auto` is vLLM's own."""

HIDDEN_STATE_WORKERS = {
    "cpu": "engine.text_runner.HiddenStateCPUWorker",
    "cuda": "engine.text_runner.HiddenStateGPUWorker",
}
"""The workers of text stages whose hidden states are read, by the type of their device."""


def build_core(settings: CoreSettings) -> EngineCore:
    """Loads a model into an in-process engine core.

    A conditioned model needs no tokenizer and cannot share KV between requests, since its rows
    are not part of what vLLM compares; a text model has both. On a GPU a compiled core runs as
    CUDA graphs at vLLM's usual batch sizes; there `auto` waits for that, which is soon done.

    Raises:
        ConfigurationError: The device is not there, vLLM refuses the model's configuration, or its
            quantisation does not run on the device.
    """
    kind = require_device(settings.device)
    dtype = resolve_dtype(settings.dtype, settings.device)
    made = marker(settings.model, dtype, settings.max_requests, settings.max_step_tokens)
    if settings.compile == "always" or (settings.compile == "auto" and kind == "cuda"):
        return _compiled_core(settings, kind, dtype, made)
    if settings.compile == "auto" and made.exists():
        try:
            return _compiled_core(settings, kind, dtype, made)
        except STAGE_FAULTS as fault:
            made.unlink(missing_ok=True)
            logger.warning(
                "The compiled form of %s is of no use any more, so the model runs uncompiled and "
                "slower until the next start: %s",
                settings.model.name,
                fault,
            )
    return _build(settings, kind, dtype, compiled=False)


def _compiled_core(settings: CoreSettings, kind: str, dtype: Dtype, made: Path) -> EngineCore:
    """Loads a compiled model and leaves the marker that says so."""
    core = _build(settings, kind, dtype, compiled=True)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.touch()
    return core


def _build(settings: CoreSettings, kind: str, dtype: Dtype, *, compiled: bool) -> EngineCore:
    arguments = EngineArgs(
        model=str(settings.model),
        skip_tokenizer_init=settings.conditioned,
        hf_overrides=settings.configure or {},
        load_format=LOAD_FORMAT if settings.weights else "auto",
        model_loader_extra_config={PREFIXES: settings.weights} if settings.weights else {},
        dtype=dtype,
        quantization=settings.quantization,
        enforce_eager=not compiled,
        compilation_config=_compilation(compiled, kind),
        max_model_len=settings.max_steps,
        max_num_seqs=settings.max_requests,
        max_num_batched_tokens=max(settings.max_step_tokens, settings.max_requests),
        kv_cache_memory_bytes=settings.key_value_cache_bytes,
        gpu_memory_utilization=0.05,
        block_size=BLOCK_SIZE,
        enable_prefix_caching=not settings.conditioned,
        enable_prompt_embeds=settings.conditioned,
        async_scheduling=False,
        disable_log_stats=True,
        use_tqdm_on_load=False,
        scheduler_cls=OmniARScheduler,
        worker_cls=_worker(settings, kind),
        additional_config=_additional(settings),
        limit_mm_per_prompt={**NO_MEDIA, **settings.media} if settings.media else {},
        # Prompts come preprocessed, and the encoders are tried by the warm-up.
        mm_processor_cache_gb=0,
        skip_mm_profiling=True,
        distributed_executor_backend="uni",
    )
    vllm_config = engine_config(arguments)
    if kind == "cuda":
        # The executor in this process takes the worker's index from here.
        vllm_config.device_config.device = torch.device(settings.device)
    with quantisation_faults(vllm_config):
        core = _cpu_core(vllm_config) if kind == "cpu" else _core(vllm_config)
    if settings.quantization is not None:
        require_quantised_layers(core, settings.quantization)
    return core


def _core(vllm_config: VllmConfig) -> EngineCore:
    return EngineCore(vllm_config, Executor.get_class(vllm_config), log_stats=False)


def _cpu_core(vllm_config: VllmConfig) -> EngineCore:
    process_groups.forget()
    try:
        with build_settings():
            return _core(vllm_config)
    finally:
        process_groups.make_missing(vllm_config)
        process_groups.disconnect()


def _worker(settings: CoreSettings, kind: str) -> str:
    if settings.conditioned:
        return CONDITIONED_WORKERS[kind]
    return (TEXT_WORKERS if settings.hidden_layer is None else HIDDEN_STATE_WORKERS)[kind]


def _additional(settings: CoreSettings) -> dict[str, Any]:
    """What our model runners want to know; vLLM's compiled forms are kept by it, among others."""
    told: dict[str, Any] = {}
    if settings.cuda_graphs:
        told[BATCH_SIZES_KEY] = list(settings.cuda_graphs)
    if settings.hidden_layer is not None:
        told[LAYER_KEY] = settings.hidden_layer
    return told


def _compilation(compiled: bool, kind: str) -> CompilationConfig:
    """How a model is compiled: vLLM's own way, but on processors by a compiler whose result loads.

    The rest of what is set here is what vLLM sets there for its own.
    """
    if not compiled or kind != "cpu":
        return CompilationConfig()
    return CompilationConfig(
        mode=CompilationMode.DYNAMO_TRACE_ONCE,
        backend=BACKEND,
        custom_ops=["none"],
        cudagraph_mode=CUDAGraphMode.NONE,
        ir_enable_torch_wrap=False,
    )


def scheduler_of(core: EngineCore) -> OmniARScheduler:
    """The core's scheduler.

    Raises:
        TypeError: It is not ours.
    """
    scheduler = core.scheduler
    if not isinstance(scheduler, OmniARScheduler):
        raise TypeError(f"The core runs {type(scheduler).__name__}, not OmniARScheduler.")
    return scheduler


def key_value_blocks_in_use(core: EngineCore) -> int:
    """Blocks of the KV cache that requests hold; the null block is not counted."""
    pool = scheduler_of(core).kv_cache_manager.block_pool
    return int(pool.num_gpu_blocks - 1 - pool.get_num_free_blocks())
