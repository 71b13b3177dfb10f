"""Compiled models: nobody waits for a compiler, and the next start is faster.

Compiling a model takes from half a minute to minutes. A first start therefore serves it eager at
once, while a process of low priority compiles it into vLLM's own cache. A marker beside that cache
says that it is there; starts that find the marker load the compiled form.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import vllm
from vllm import ModelRegistry, envs

from engine.deploy_config import DeployConfig, StageDeployment
from engine.faults import STAGE_FAULTS
from engine.pipeline_config import Models, PipelineConfig, StageKind, load_pipeline

logger = logging.getLogger(__name__)

MARKERS = "antiphon"

LONGEST_REASON = 400
"""Characters of a compiler's complaint that are kept."""

Dtype = Literal["float32", "float16", "bfloat16"]


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One stage that is to be compiled.

    Attributes:
        pipeline: The pipeline's name.
        stage: The stage's name.
        model: The folder of its model.
        deployment: How it runs.
    """

    pipeline: str
    stage: str
    model: Path
    deployment: StageDeployment

    def command(self) -> list[str]:
        """The command that compiles it in a process of its own."""
        module = [sys.executable, "-m", "engine.compiled", self.pipeline, self.stage]
        return [*module, str(self.model), self.deployment.model_dump_json()]


def marker(model: Path, dtype: str, max_requests: int, max_step_tokens: int) -> Path:
    """The file that says that a model was compiled, by all that a compiled form depends on."""
    config = (model / "config.json").read_text(encoding="utf-8")
    parts = {
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "config": config,
        "code": [code_digest(name) for name in json.loads(config).get("architectures", [])],
        "dtype": dtype,
        "max_requests": max_requests,
        "max_step_tokens": max_step_tokens,
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
    return Path(envs.VLLM_CACHE_ROOT) / MARKERS / f"compiled-{digest}"


def failure_of(made: Path) -> Path:
    """The file that says why a model could not be compiled; beside the marker."""
    return made.with_suffix(".failed")


def code_digest(architecture: str) -> str | None:
    """The SHA-256 of the module that holds a registered model; None if it is not registered."""
    registered = ModelRegistry.models.get(architecture)
    if registered is None:
        return None
    source = inspect.getsourcefile(registered.load_model_cls())
    return None if source is None else hashlib.sha256(Path(source).read_bytes()).hexdigest()


def can_compile() -> bool:
    """Whether there is a C++ compiler."""
    return shutil.which("g++") is not None


def run_jobs(jobs: Sequence[CompileJob]) -> subprocess.Popen[bytes] | None:
    """Starts compiling in the background, one job after another; None if there is nothing to do.

    The process is the caller's to end.
    """
    if not jobs:
        return None
    if not can_compile():
        logger.warning(
            "There is no C++ compiler (g++), so models run uncompiled and slower; install one."
        )
        return None
    names = ", ".join(job.stage for job in jobs)
    logger.info("Compiling for the next start, at low priority: %s.", names)
    commands = json.dumps([job.command() for job in jobs])
    return subprocess.Popen(
        [sys.executable, "-m", "engine.compile_queue", commands],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def compile_ahead_of(
    pipeline: PipelineConfig,
    models: Models,
    deploy: DeployConfig,
    progress: Callable[[str], None],
) -> subprocess.Popen[bytes] | None:
    """Has every stage that runs uncompiled now compiled for the next start.

    Returns:
        The background process, if there is anything to do.
    """
    jobs = []
    for stage in pipeline.stages:
        model, deployment = models[stage.name], deploy.stage(stage.name)
        if stage.kind is not StageKind.AUTOREGRESSIVE or not wants_compiling(model, deployment):
            continue
        failed = failure_of(_marker_of(model, deployment))
        if failed.exists():
            progress(
                f"Serving {stage.name} uncompiled and slower, since compiling it failed: "
                f"{failed.read_text(encoding='utf-8')} Remove {failed} to have it tried again."
            )
        else:
            jobs.append(CompileJob(pipeline.name, stage.name, model, deployment))
    if jobs:
        names = ", ".join(job.stage for job in jobs)
        progress(f"Serving uncompiled; compiling for the next start: {names}")
    return run_jobs(jobs)


def wants_compiling(model: Path, deployment: StageDeployment) -> bool:
    """Whether a stage runs eager now but should be compiled for the next start."""
    if deployment.device != "cpu":
        return False  # compiled at the start itself
    return deployment.compile == "auto" and not _marker_of(model, deployment).exists()


def _marker_of(model: Path, deployment: StageDeployment) -> Path:
    dtype = resolve_dtype(deployment.dtype)
    return marker(model, dtype, deployment.max_requests, deployment.max_step_tokens)


def resolve_dtype(
    dtype: Literal["auto", "float32", "float16", "bfloat16"], device: str = "cpu"
) -> Dtype:
    """What `auto` means on a device, `cpu` or `cuda:N`; other names are kept."""
    if dtype != "auto":
        return dtype
    if device != "cpu":
        return "bfloat16"
    return "bfloat16" if torch.cpu._is_avx512_bf16_supported() else "float32"


def compile_stage(job: CompileJob) -> None:
    """Builds a stage compiled, which fills vLLM's cache and leaves the marker.

    Where that fails, a file says why, so that the next start need not try in vain.
    """
    stage = next(s for s in load_pipeline(job.pipeline).stages if s.name == job.stage)
    deployment = job.deployment.model_copy(update={"compile": "always"})
    try:
        stage.build(job.model, deployment).close()
    except STAGE_FAULTS as fault:
        failed = failure_of(_marker_of(job.model, deployment))
        failed.parent.mkdir(parents=True, exist_ok=True)
        failed.write_text(" ".join(str(fault).split())[:LONGEST_REASON], encoding="utf-8")
        raise


def main(arguments: Sequence[str]) -> None:
    """Compiles the one stage that the command names."""
    pipeline, stage, model, deployment = arguments
    job = CompileJob(pipeline, stage, Path(model), StageDeployment.model_validate_json(deployment))
    compile_stage(job)


if __name__ == "__main__":
    main(sys.argv[1:])
