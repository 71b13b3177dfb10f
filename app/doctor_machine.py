"""Checks of the machine: processor, memory, compiler, audio formats, folders and ports."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path

import av.codec

from app.audio.codec import CODECS
from app.doctor_finding import Finding, Severity, fine

OLDEST_PYTHON = (3, 11)

NEEDED_GIBIBYTES = 3.0
"""What the server and the embedded voice take, with room to breathe."""


def check_python() -> Finding:
    """Whether this Python is new enough."""
    found = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return Finding("Python", Severity.WRONG, f"{found} is too old.", "Install Python 3.11.")
    return fine("Python", found)


def check_processor(cpu_information: Path = Path("/proc/cpuinfo")) -> Finding:
    """Whether the processor has the vector instructions that vLLM's CPU build uses."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return fine("processor", platform.machine())
    try:
        lines = cpu_information.read_text("utf-8").splitlines()
    except OSError:
        return Finding("processor", Severity.WARNING, f"{cpu_information} cannot be read.")
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    if "avx2" not in flags:
        return Finding(
            "processor",
            Severity.WRONG,
            "It has no AVX2 instructions, which vLLM's CPU build needs.",
            "Use a machine with AVX2 (most made since 2015), or a CUDA GPU and `EXTRA=cuda`.",
        )
    return fine("processor", "AVX-512" if "avx512f" in flags else "AVX2")


def check_cores() -> Finding:
    """Whether there are cores enough for the engine's thread and the server's."""
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        return Finding(
            "cores",
            Severity.WARNING,
            "1 core: the engine and the server will share it.",
            "Give the server two cores for several streams at once.",
        )
    return fine("cores", f"{cores}")


def check_memory(
    memory_information: Path = Path("/proc/meminfo"),
    container_limit: Path = Path("/sys/fs/cgroup/memory.max"),
) -> Finding:
    """Whether there is memory enough, in a container within its limit."""
    try:
        fields = memory_information.read_text("utf-8").split()
        available = int(fields[fields.index("MemAvailable:") + 1]) / 2**20
    except (OSError, ValueError, IndexError):
        return Finding("memory", Severity.WARNING, f"{memory_information} cannot be read.")
    # Outside containers the file is not there; in one without a limit it says `max`.
    with suppress(OSError, ValueError):
        available = min(available, int(container_limit.read_text("utf-8")) / 2**30)
    if available < NEEDED_GIBIBYTES:
        return Finding(
            "memory",
            Severity.WARNING,
            f"{available:.1f} GiB are available; {NEEDED_GIBIBYTES:.0f} GiB are advised.",
            "End other programs, or give the container more.",
        )
    return fine("memory", f"{available:.1f} GiB available")


def check_compiler() -> Finding:
    """Whether models can be compiled, which makes steps about a third shorter."""
    missing = []
    if shutil.which("g++") is None:
        missing.append("g++")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append("python3-dev")
    if missing:
        return Finding(
            "compiler",
            Severity.WARNING,
            f"Without {' and '.join(missing)} models run uncompiled and slower.",
            f"On Debian: apt-get install {' '.join(missing)}",
        )
    return fine("compiler", "g++ and Python's headers are there")


def check_encoders() -> Finding:
    """Whether the FFmpeg inside PyAV can write every response format."""
    missing = [name for name, codec in CODECS.items() if not _can_encode(codec.encoder)]
    if missing:
        return Finding(
            "audio formats",
            Severity.WRONG,
            f"PyAV cannot encode {', '.join(missing)}.",
            "Install PyAV's own wheel, which brings all: pip install --force-reinstall av",
        )
    return fine("audio formats", f"{', '.join(CODECS)}, wav and pcm")


def check_cache(folder: Path) -> Finding:
    """Whether prepared models can be kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(
            "cache folder",
            Severity.WRONG,
            f"{folder} cannot be written: {error.strerror}.",
            "Make it writable, or name another with ANTIPHON_CACHE_FOLDER.",
        )
    return fine("cache folder", str(folder))


def check_port(host: str, port: int) -> Finding:
    """Whether the server could listen where it is told to."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return Finding(
            "port",
            Severity.WARNING,
            f"{host}:{port} cannot be listened on: {error.strerror}; is a server running there?",
            "Stop it, or serve elsewhere: antiphon serve --port 8001",
        )
    return fine("port", f"{host}:{port} is free")


def _can_encode(name: str) -> bool:
    """Whether FFmpeg was built with an encoder."""
    try:
        av.codec.Codec(name, "w")
    except ValueError:
        return False
    return True
