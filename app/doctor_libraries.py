"""Checks of the libraries that compute, which a process of its own imports and looks at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from app.doctor_finding import SETUP, Finding, Severity, fine

REPAIR = "Run: .venv/bin/python scripts/repair_environment.py (`make setup` does it as well)"

INSPECTION_SECONDS = 300.0
"""The longest that importing everything and inspecting models may take."""


def look_at_libraries(architectures: list[str]) -> dict[str, Any] | str:
    """What `engine.environment` reports, or why it reports nothing."""
    command = [sys.executable, "-m", "engine.environment", *architectures]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=INSPECTION_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer after {INSPECTION_SECONDS:.0f} s"
    lines = result.stdout.strip().splitlines()
    if result.returncode != 0 or not lines:
        errors = result.stderr.strip().splitlines()
        return errors[-1] if errors else f"exit code {result.returncode}"
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def check_libraries(report: dict[str, Any] | str) -> Iterator[Finding]:
    """Reads a report of `engine.environment`."""
    if isinstance(report, str):
        message = f"Looking at torch and vLLM failed: {report}."
        yield Finding("libraries", Severity.WRONG, message, SETUP)
        return
    yield from _check_torch(report["torch"])
    supported = report["supported_vllm"]
    if report["vllm"] in supported:
        yield fine("vLLM", report["vllm"])
    else:
        message = f"{report['vllm'] or 'Not installed'}; supported: {', '.join(supported)}."
        yield Finding("vLLM", Severity.WRONG, message, SETUP)
    if report["kernels"] is not None:
        message = f"Its native kernels do not load: {report['kernels']}."
        mend = "On Debian: apt-get install libnuma1; if that is there, run: make clean setup"
        yield Finding("vLLM's kernels", Severity.WRONG, message, mend)
    for name, problem in report["imports"].items():
        if problem is not None:
            mend = REPAIR if name in ("torchvision", "torchaudio") else SETUP
            yield Finding(f"import {name}", Severity.WRONG, f"It fails: {problem}.", mend)
    if not any(report["imports"].values()):
        yield fine("imports", ", ".join(report["imports"]))
    for name, problem in report["architectures"].items():
        check = f"vLLM's {name}"
        if problem is None:
            yield fine(check, "can be inspected")
        else:
            yield Finding(check, Severity.WRONG, f"It cannot be inspected: {problem}.", REPAIR)


def _check_torch(torch: dict[str, Any] | None) -> Iterator[Finding]:
    """Which build of torch this is, and how many threads it computes with."""
    if torch is None:
        return  # The failed import says so.
    if torch["cuda"] is not None and not torch["gpu"]:
        yield Finding(
            "torch",
            Severity.WARNING,
            f"{torch['version']} is built for CUDA, but no GPU is found.",
            "Install the GPU's driver, or run: make setup EXTRA=cpu",
        )
    else:
        build = f"CUDA {torch['cuda']}" if torch["cuda"] else "CPU"
        yield fine("torch", f"{torch['version']}, {build} build")
    if torch["cuda"] is None and torch["threads"] > len(os.sched_getaffinity(0)):
        yield Finding(
            "threads",
            Severity.WARNING,
            f"torch would compute with {torch['threads']} threads, more than there are cores.",
            "Unset OMP_NUM_THREADS, or set it to 1: the server knows what is best.",
        )
    else:
        yield fine("threads", f"torch computes with {torch['threads']}")
