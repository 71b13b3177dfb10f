"""Voices that are not the server's own, for tests of its ear."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
import soxr

RECORDINGS = Path("/usr/share/pocketsphinx/test/data")
"""Debian's `pocketsphinx-testdata`: people who read aloud."""

RATE = 24_000

Samples = npt.NDArray[np.float32]


@functools.cache
def synthesized(text: str, speed: int = 160) -> Samples:
    """A text spoken by eSpeak NG, at 24 kHz."""
    program = shutil.which("espeak-ng")
    if program is None:
        pytest.skip("espeak-ng is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        command = [program, "-v", "en-us", "-s", str(speed), "-w", str(path), text]
        subprocess.run(command, check=True)
        return _at_rate(*soundfile.read(path, dtype="float32"))


@functools.cache
def recorded(name: str) -> Samples:
    """A recording of `pocketsphinx-testdata`, at 24 kHz."""
    path = RECORDINGS / name
    if not path.exists():
        pytest.skip("pocketsphinx-testdata is not installed")
    if path.suffix == ".raw":
        samples = np.fromfile(path, "<i2").astype(np.float32) / 32768
        return _at_rate(samples, 16_000)
    return _at_rate(*soundfile.read(path, dtype="float32"))


def silence(seconds: float) -> Samples:
    """Faint noise, as rooms have."""
    noise = np.random.default_rng(1).normal(0, 1e-4, int(seconds * RATE))
    return noise.astype(np.float32)


def pcm(samples: Samples) -> bytes:
    """16-bit samples."""
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def _at_rate(samples: Samples, rate: int) -> Samples:
    return np.asarray(soxr.resample(samples, rate, RATE), dtype=np.float32)
