"""Makes torchvision and torchaudio importable beside a CPU build of torch.

The registries' wheels of torchvision and torchaudio hold native libraries that are linked to CUDA.
Beside a CPU torch those libraries cannot load: torchaudio raises while it is imported, torchvision
fails when it registers the shapes of operators that do not exist. Neither library's native part
is needed here, but vLLM's omni models import both packages. So where, and only where, torch is a
CPU build and the libraries are linked to CUDA, this script

* removes the native libraries of both packages,
* empties `torchvision/_meta_registrations.py`, which describes the removed operators,
* uninstalls torchcodec, which is nothing but such a library.

It changes nothing in an environment that is sound, and may be run as often as you like: pip undoes
the repair whenever it installs one of the packages again.

Run it with the environment's own Python: `.venv/bin/python scripts/repair_environment.py`. With
`--check` it only says what it would do and exits with 1 if that is anything.
"""

from __future__ import annotations

import argparse
import mmap
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

CUDA_LIBRARIES = (b"libcudart", b"libtorch_cuda", b"libc10_cuda", b"libnvrtc")
"""Names of which at least one is in the dynamic section of every library linked to CUDA."""

NATIVE_LIBRARIES = {
    "torchvision": ("torchvision/*.so", "torchvision.libs/*"),
    "torchaudio": ("torchaudio/lib/*.so", "torchaudio.libs/*"),
    "torchcodec": ("torchcodec/*.so", "torchcodec.libs/*"),
}
"""Where each package keeps its native libraries, relative to site-packages."""

META_REGISTRATIONS = "torchvision/_meta_registrations.py"
"""Describes the shapes of torchvision's native operators; raises without them."""


@dataclass(frozen=True)
class Repair:
    """One change that the environment needs.

    Attributes:
        reason: What is done and why, for people.
        act: Does it.
    """

    reason: str
    act: Callable[[], None]


def is_cpu_build_of_torch(site_packages: Path) -> bool:
    """Whether the installed torch was built without CUDA and ROCm; False if there is no torch.

    Reads torch's own version file instead of importing torch, which takes seconds.
    """
    version_file = site_packages / "torch" / "version.py"
    if not version_file.is_file():
        return False
    text = version_file.read_text("utf-8")
    built_for = re.findall(r"^(?:cuda|hip)\b[^=\n]*=\s*(\S+)", text, re.MULTILINE)
    return bool(built_for) and all(value == "None" for value in built_for)


def is_linked_to_cuda(library: Path) -> bool:
    """Whether a native library names one of CUDA's."""
    if library.stat().st_size == 0:
        return False
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(name) >= 0 for name in CUDA_LIBRARIES)


def native_libraries(site_packages: Path, package: str) -> list[Path]:
    """The native libraries of a package that are on disk."""
    return [
        path
        for pattern in NATIVE_LIBRARIES[package]
        for path in sorted(site_packages.glob(pattern))
        if path.is_file()
    ]


def needed_repairs(site_packages: Path) -> list[Repair]:
    """What is to be done; empty in a sound environment."""
    if not is_cpu_build_of_torch(site_packages):
        return []
    repairs = []
    for package in ("torchvision", "torchaudio"):
        libraries = native_libraries(site_packages, package)
        if any(is_linked_to_cuda(library) for library in libraries):
            reason = (
                f"{package}: removing {len(libraries)} native libraries that are linked to CUDA "
                "and cannot load beside the CPU build of torch"
            )
            repairs.append(Repair(reason, partial(remove, libraries)))
    registrations = site_packages / META_REGISTRATIONS
    if registrations.is_file() and registrations.stat().st_size > 0:
        libraries = native_libraries(site_packages, "torchvision")
        if not libraries or any(is_linked_to_cuda(library) for library in libraries):
            reason = f"{META_REGISTRATIONS}: emptying it, since it describes the removed operators"
            repairs.append(Repair(reason, partial(empty, registrations)))
    codec_libraries = native_libraries(site_packages, "torchcodec")
    if any(is_linked_to_cuda(library) for library in codec_libraries):
        reason = "torchcodec: uninstalling it, since it is linked to CUDA and not needed"
        repairs.append(Repair(reason, partial(uninstall, "torchcodec")))
    return repairs


def remove(libraries: list[Path]) -> None:
    """Deletes native libraries, and the folders that are empty after that."""
    for library in libraries:
        library.unlink(missing_ok=True)
    for folder in {library.parent for library in libraries}:
        if folder.suffix == ".libs" and not any(folder.iterdir()):
            shutil.rmtree(folder)


def empty(file: Path) -> None:
    """Leaves a Python module without content."""
    file.write_text("", "utf-8")


def uninstall(package: str) -> None:
    """Removes a package with pip."""
    command = [sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", package]
    subprocess.run(command, check=True)


def main(arguments: list[str] | None = None) -> int:
    """Repairs the environment that runs this script; see the module's text."""
    parser = argparse.ArgumentParser(
        description="Repair torchvision and torchaudio beside CPU torch."
    )
    parser.add_argument("--check", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--site-packages",
        type=Path,
        default=Path(sysconfig.get_path("platlib")),
        help="the folder to repair (default: that of the running Python)",
    )
    options = parser.parse_args(arguments)
    repairs = needed_repairs(options.site_packages)
    if not repairs:
        print("  torchvision and torchaudio: no repair needed")
        return 0
    for repair in repairs:
        print(f"  {'needed: ' if options.check else ''}{repair.reason}")
        if not options.check:
            repair.act()
    return 1 if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
