"""Tiny checkpoints of every variant, their references, and the clone that tests speak with."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.checkpoints.qwen3_tts import Variant
from tests.pipelines.qwen3_tts.reference_process import ReferenceProcess

REFERENCE_TEXT = "nobody knew the words"


@pytest.fixture(scope="session")
def reference() -> Iterator[ReferenceProcess]:
    process = ReferenceProcess()
    yield process
    process.close()


@pytest.fixture(scope="session")
def checkpoints(
    reference: ReferenceProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[Variant, Path]:
    root = tmp_path_factory.mktemp("qwen3_tts")
    return {variant: reference.make(root / variant.value, variant) for variant in Variant}


def some_sound(seconds: float, rate: int) -> np.ndarray:
    """A gliding tone with overtones and a little noise."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(180 + 60 * np.sin(3 * time)) / rate
    tone = sum(np.sin(k * phase) / k for k in range(1, 6))
    noise = np.random.default_rng(0).normal(size=len(time))
    return (0.2 * tone + 0.01 * noise).astype(np.float32)


def as_file(samples: np.ndarray, rate: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="FLOAT")
    return file.getvalue()


@pytest.fixture(scope="session")
def reference_audio() -> bytes:
    """Reference audio of 1.3 s at 24 kHz."""
    return as_file(some_sound(1.3, 24_000), 24_000)
