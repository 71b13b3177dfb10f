from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "repair_environment.py"

CPU_TORCH = """from typing import Optional
__version__ = '2.13.0+cpu'
cuda: Optional[str] = None
hip: Optional[str] = None
"""
CUDA_TORCH = CPU_TORCH.replace("cuda: Optional[str] = None", "cuda: Optional[str] = '13.0'")


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """An environment as the registries leave it beside a CPU build of torch."""
    linked_to_cuda = b"\x7fELF...\0libc10.so\0libcudart.so.13\0..."
    write(
        tmp_path,
        {
            "torch/version.py": CPU_TORCH.encode(),
            "torchvision/__init__.py": b"",
            "torchvision/_C.so": linked_to_cuda,
            "torchvision/image.so": b"\x7fELF...\0libjpeg.so\0...",
            "torchvision/_meta_registrations.py": b"raise RuntimeError\n",
            "torchvision.libs/libcudart.1.so.13": linked_to_cuda,
            "torchaudio/lib/libtorchaudio.so": linked_to_cuda,
            "torchaudio/__init__.py": b"",
        },
    )
    return tmp_path


def repair(site_packages: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, "--site-packages", site_packages, *options]
    return subprocess.run(command, capture_output=True, text=True)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_natives_linked_to_cuda_are_removed_beside_a_cpu_torch(site_packages: Path) -> None:
    result = repair(site_packages)
    assert result.returncode == 0, result.stderr
    assert content(site_packages) == {
        "torch/version.py": CPU_TORCH.encode(),
        "torchvision/__init__.py": b"",
        "torchvision/_meta_registrations.py": b"",
        "torchaudio/__init__.py": b"",
    }
    assert "torchvision: removing 3 native libraries" in result.stdout
    assert "torchaudio: removing 1 native libraries" in result.stdout


def test_a_second_repair_finds_nothing_to_do(site_packages: Path) -> None:
    repair(site_packages)
    repaired = content(site_packages)
    result = repair(site_packages)
    assert "no repair needed" in result.stdout
    assert content(site_packages) == repaired


def test_a_reinstalled_package_is_repaired_again(site_packages: Path) -> None:
    repaired_first = repair(site_packages)
    write(site_packages, {"torchvision/_C.so": b"libtorch_cuda.so"})
    write(site_packages, {"torchvision/_meta_registrations.py": b"raise RuntimeError\n"})
    assert "needed" in repair(site_packages, "--check").stdout
    repair(site_packages)
    assert not (site_packages / "torchvision/_C.so").exists()
    assert (site_packages / "torchvision/_meta_registrations.py").read_bytes() == b""
    assert repaired_first.returncode == 0


def test_a_repair_that_stopped_half_way_is_finished(site_packages: Path) -> None:
    (site_packages / "torchvision/_C.so").unlink()
    (site_packages / "torchvision/image.so").unlink()
    (site_packages / "torchvision.libs/libcudart.1.so.13").unlink()
    repair(site_packages)
    assert (site_packages / "torchvision/_meta_registrations.py").read_bytes() == b""


@pytest.mark.parametrize("torch_version", [CUDA_TORCH, None])
def test_nothing_is_touched_without_a_cpu_build_of_torch(
    site_packages: Path, torch_version: str | None
) -> None:
    version_file = site_packages / "torch/version.py"
    if torch_version is None:
        version_file.unlink()
    else:
        version_file.write_text(torch_version)
    before = content(site_packages)
    assert "no repair needed" in repair(site_packages).stdout
    assert content(site_packages) == before


def test_cpu_builds_of_torchvision_and_torchaudio_are_left_alone(site_packages: Path) -> None:
    built_for_cpu = b"\x7fELF...\0libc10.so\0libtorch_cpu.so\0..."
    (site_packages / "torchvision.libs/libcudart.1.so.13").unlink()
    write(site_packages, {"torchvision/_C.so": built_for_cpu})
    write(site_packages, {"torchaudio/lib/libtorchaudio.so": built_for_cpu})
    before = content(site_packages)
    assert "no repair needed" in repair(site_packages).stdout
    assert content(site_packages) == before


def test_check_changes_nothing_and_says_that_something_is_wrong(site_packages: Path) -> None:
    before = content(site_packages)
    result = repair(site_packages, "--check")
    assert result.returncode == 1
    assert "needed: torchvision" in result.stdout
    assert content(site_packages) == before


def test_the_environment_of_the_tests_is_sound() -> None:
    result = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
