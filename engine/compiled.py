"""Compiled models: nobody waits for a compiler, and the next start is faster.

Compiling a model takes from half a minute to minutes. A first start therefore serves it eager at
once, while a process of low priority compiles it into vLLM's own cache. A marker beside that cache
says that it is there; starts that find the marker load the compiled form.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import vllm
from vllm import envs

from engine.deploy_config import StageDeployment
from engine.pipeline_config import load_pipeline

logger = logging.getLogger(__name__)

LOWEST_PRIORITY = 19
MARKERS = "antiphon"


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


def marker(model: Path, dtype: str, max_requests: int) -> Path:
    """The file that says that a model was compiled, by all that a compiled form depends on."""
    parts = {
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "config": (model / "config.json").read_text(encoding="utf-8"),
        "dtype": dtype,
        "max_requests": max_requests,
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
    return Path(envs.VLLM_CACHE_ROOT) / MARKERS / f"compiled-{digest}"


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
    script = [sys.executable, "-m", "engine.compiled", "--jobs"]
    commands = json.dumps([job.command() for job in jobs])
    return subprocess.Popen(
        [*script, commands],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def compile_stage(job: CompileJob) -> None:
    """Builds a stage compiled, which fills vLLM's cache and leaves the marker."""
    stage = next(s for s in load_pipeline(job.pipeline).stages if s.name == job.stage)
    deployment = job.deployment.model_copy(update={"compile": "always"})
    stage.build(job.model, deployment).close()


def main(arguments: Sequence[str]) -> int:
    """The background process: either a list of commands, or one job."""
    os.nice(LOWEST_PRIORITY)
    if arguments[0] == "--jobs":
        return max(subprocess.call(command) for command in json.loads(arguments[1]))
    pipeline, stage, model, deployment = arguments
    compile_stage(
        CompileJob(pipeline, stage, Path(model), StageDeployment.model_validate_json(deployment))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
