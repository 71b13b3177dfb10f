"""Makes the environment that Antiphon runs in, or brings it up to date.

`make setup`, `make serve` and `make test` call this. It needs nothing but Python 3.11 or newer with
pip and venv. Every package is pinned by `constraints/cpu.txt` or `constraints/cuda.txt`. When
nothing changed since the last time, it is done at once: a stamp in the environment holds a digest
of everything that decides what is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pip_progress import PipError, run_pip

ROOT = Path(__file__).resolve().parent.parent

OLDEST_PYTHON = (3, 11)

TORCH = "torch==2.13.0+cpu"
"""The CPU build that vLLM's CPU build is made for."""

PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""Where the PyTorch project publishes CPU builds; asked only if pip's own sources have none."""

STAMP = "antiphon-setup.json"

INPUTS = (
    "constraints/{backend}.txt",
    "constraints/references.txt",
    "scripts/set_up.py",
    "scripts/repair_environment.py",
)
"""The files that decide what is installed, beside parts of `pyproject.toml`."""

PARTS_OF_PYPROJECT = ("build-system", "project")
"""The tables that do; the others are settings of tools."""

CHECK = """
import torch, torchvision, torchaudio, transformers, vllm
from vllm.platforms import current_platform
current_platform.import_kernels()
torch.ops._C.silu_and_mul
print(vllm.__version__)
"""
"""Imports what the server imports; the last but one line fails without vLLM's native kernels."""


class SetUpError(Exception):
    """The environment cannot be made; the message says why and how to mend it."""


@dataclass(frozen=True)
class Stamp:
    """What an environment holds.

    Attributes:
        digest: Of the files that decided what is installed.
        backend: `cpu` or `cuda`.
        extras: Further extras of the project that were installed.
    """

    digest: str
    backend: str
    extras: list[str]

    @classmethod
    def read(cls, environment: Path) -> Stamp | None:
        """The stamp of an environment; None where there is none or it cannot be read."""
        try:
            return cls(**json.loads((environment / STAMP).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, environment: Path) -> None:
        """Leaves the stamp; the last thing that a set-up does."""
        (environment / STAMP).write_text(json.dumps(asdict(self)) + "\n", "utf-8")


def say(text: str) -> None:
    """Prints one line of progress at once."""
    print(text, flush=True)


def digest_of_inputs(root: Path, backend: str) -> str:
    """A digest of everything that decides what is installed."""
    digest = hashlib.sha256(".".join(map(str, sys.version_info[:3])).encode())
    # Imported here, so that an older Python, which has none, reaches the message that says so.
    import tomllib

    tables = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    deciding = {name: tables.get(name) for name in PARTS_OF_PYPROJECT}
    digest.update(json.dumps(deciding, sort_keys=True).encode())
    for name in INPUTS:
        digest.update((root / name.format(backend=backend)).read_bytes())
    return digest.hexdigest()


def is_up_to_date(stamp: Stamp | None, digest: str, backend: str, extras: list[str]) -> bool:
    """Whether an environment with this stamp holds all that is asked for."""
    if stamp is None or stamp.digest != digest or stamp.backend != backend:
        return False
    return set(extras) <= set(stamp.extras)


def make_environment(environment: Path, *, clear: bool) -> None:
    """Makes the virtual environment if it is not there, anew if it does not work."""
    python = environment / "bin" / "python"
    if not clear and python.exists():
        works = subprocess.run([python, "-m", "pip", "--version"], capture_output=True)
        if works.returncode == 0:
            return
        say("The environment is damaged; making it anew.")
    say(f"Making the environment {environment.name} with Python {sys.version.split()[0]}.")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", environment], capture_output=True, text=True
    )
    if made.returncode != 0:
        raise SetUpError(
            f"Python's venv module failed:\n{made.stdout}{made.stderr}\n"
            "On Debian, `apt-get install python3-venv` usually mends this."
        )


def install_torch(python: Path, log: Path) -> None:
    """Installs the CPU build of torch, from pip's own sources if they have it."""
    say(f"Installing the CPU build of PyTorch ({TORCH}).")
    try:
        run_pip(python, ["install", TORCH], log)
    except PipError as error:
        if "No matching distribution found for torch" not in error.output:
            raise
        say("  pip's configured sources have no CPU build; asking the PyTorch project's index")
        run_pip(python, ["install", "--extra-index-url", PYTORCH_CPU_INDEX, TORCH], log)


def install(root: Path, environment: Path, backend: str, extras: list[str]) -> None:
    """Installs the project with its dependencies, and repairs what the registries leave broken."""
    python = environment / "bin" / "python"
    log = environment / "install.log"
    log.write_text("", "utf-8")
    if backend == "cpu":
        install_torch(python, log)
    say(f"Installing Antiphon and its dependencies ({', '.join([backend, *extras])}).")
    wanted = f"{root}[{','.join([backend, *extras])}]"
    constraints = root / "constraints" / f"{backend}.txt"
    run_pip(python, ["install", "--constraint", str(constraints), "--editable", wanted], log)
    if "dev" in extras:
        say("Installing the references that tests compare with.")
        references = root / "constraints" / "references.txt"
        run_pip(python, ["install", "--no-deps", "--requirement", str(references)], log)
    say("Checking the native libraries.")
    subprocess.run([python, root / "scripts" / "repair_environment.py"], check=True)
    say("Trying the imports that the server needs.")
    tried = subprocess.run(
        [python, "-c", CHECK],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "VLLM_LOGGING_LEVEL": "ERROR"},
    )
    if tried.returncode != 0:
        raise SetUpError(
            f"The installed packages cannot be imported:\n{tried.stderr[-3000:]}\n"
            "`make clean` and `make setup` make the environment anew."
        )
    say(f"  all imports work; vLLM {tried.stdout.split()[-1]}")


def set_up(root: Path, environment: Path, backend: str, extras: list[str]) -> None:
    """Makes or updates an environment; does nothing where everything is in place."""
    digest = digest_of_inputs(root, backend)
    stamp = Stamp.read(environment)
    if is_up_to_date(stamp, digest, backend, extras):
        say(f"The environment {environment.name} is up to date.")
        return
    started = time.monotonic()
    other_backend = stamp is not None and stamp.backend != backend
    if other_backend:
        say("The environment was made for other hardware; both builds cannot live in one.")
    make_environment(environment, clear=other_backend)
    # The old stamp must not vouch for an installation that stops half way.
    (environment / STAMP).unlink(missing_ok=True)
    kept = stamp.extras if stamp is not None and not other_backend else []
    extras = sorted({*kept, *extras})
    install(root, environment, backend, extras)
    Stamp(digest, backend, extras).write(environment)
    say(f"The environment is ready ({time.monotonic() - started:.0f} s).")


def main() -> int:
    """Reads the command line and sets up."""
    if sys.version_info < OLDEST_PYTHON:
        say(
            f"Antiphon needs Python 3.11 or newer; this is {sys.version.split()[0]}. "
            "Name another with `make PYTHON=python3.11 ...`."
        )
        return 1
    parser = argparse.ArgumentParser(description="Make or update the environment.")
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--extra", action="append", default=[], help="a further extra, as `dev`")
    options = parser.parse_args()
    try:
        set_up(ROOT, options.environment.absolute(), options.backend, options.extra)
    except (SetUpError, PipError) as error:
        say(f"\n{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
