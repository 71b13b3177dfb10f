"""Building vLLM engine cores that run in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vllm.engine.arg_utils import EngineArgs
from vllm.v1.engine.core import EngineCore
from vllm.v1.executor import Executor

from engine.compiled import marker, resolve_dtype
from engine.deploy_config import StageDeployment
from engine.scheduler import OmniARScheduler

BLOCK_SIZE = 32
"""Positions in one block of the KV cache: whole blocks are shared, so small ones share more."""


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
        key_value_cache_bytes: Memory for the paged KV cache.
        compile: See `StageDeployment.compile`.
        input_limit: How many rows a conditioned request may have ahead of its steps.
    """

    model: Path
    conditioned: bool = True
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "float32"
    max_requests: int = 16
    max_steps: int = 32768
    key_value_cache_bytes: int = 256 * 2**20
    compile: Literal["auto", "always", "never"] = "never"
    input_limit: int = 64

    @classmethod
    def of(cls, folder: Path, deployment: StageDeployment, *, conditioned: bool) -> CoreSettings:
        """The settings of a model that a deployment asks for."""
        return cls(
            model=folder,
            conditioned=conditioned,
            dtype=deployment.dtype,
            max_requests=deployment.max_requests,
            max_steps=deployment.max_steps,
            key_value_cache_bytes=deployment.key_value_cache_bytes,
            compile=deployment.compile,
            input_limit=deployment.input_limit,
        )


def build_core(settings: CoreSettings) -> EngineCore:
    """Loads a model into an in-process engine core.

    A conditioned model needs no tokenizer and cannot share KV between requests, since its rows
    are not part of what vLLM compares; a text model has both.
    """
    dtype = resolve_dtype(settings.dtype)
    made = marker(settings.model, dtype, settings.max_requests)
    compiled = settings.compile == "always" or (settings.compile == "auto" and made.exists())
    arguments = EngineArgs(
        model=str(settings.model),
        skip_tokenizer_init=settings.conditioned,
        dtype=dtype,
        enforce_eager=not compiled,
        max_model_len=settings.max_steps,
        max_num_seqs=settings.max_requests,
        max_num_batched_tokens=max(2048, settings.max_requests),
        kv_cache_memory_bytes=settings.key_value_cache_bytes,
        gpu_memory_utilization=0.05,
        block_size=BLOCK_SIZE,
        enable_prefix_caching=not settings.conditioned,
        enable_prompt_embeds=settings.conditioned,
        async_scheduling=False,
        disable_log_stats=True,
        scheduler_cls=OmniARScheduler,
        worker_cls="engine.runner.OmniCPUWorker" if settings.conditioned else "auto",
        distributed_executor_backend="uni",
    )
    vllm_config = arguments.create_engine_config()
    core = EngineCore(vllm_config, Executor.get_class(vllm_config), log_stats=False)
    if compiled:
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
    return core


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
