"""Calls the reference in its own process."""

from __future__ import annotations

import importlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tests.checkpoints.qwen3_tts import Variant
from tests.drawing import Draws, ForcedDraws

REFERENCE = "tests.pipelines.qwen3_tts.reference"
CHECKPOINT = "tests.checkpoints.qwen3_tts"


def call(module: str, function: str, *arguments: Any, **named: Any) -> Any:
    """What the reference's process runs."""
    return getattr(importlib.import_module(module), function)(*arguments, **named)


class ReferenceProcess:
    """The reference of several checkpoints; see `tests.pipelines.qwen3_tts.reference`."""

    def __init__(self) -> None:
        self._executor = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def _call(self, module: str, function: str, *arguments: Any, **named: Any) -> Any:
        return self._executor.submit(call, module, function, *arguments, **named).result()

    def make(self, folder: Path, variant: Variant) -> Path:
        return self._call(CHECKPOINT, "make", folder, variant)

    def codes(self, folder: Path, text: str, **arguments: Any) -> np.ndarray:
        return self._call(REFERENCE, "codes", folder, text, **arguments)

    def drawn_from(
        self, folder: Path, text: str, draws: list[Draws], **arguments: Any
    ) -> ForcedDraws:
        return self._call(REFERENCE, "drawn_from", folder, text, draws, **arguments)

    def clone(
        self, folder: Path, sound: tuple[np.ndarray, int, str | None]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        return self._call(REFERENCE, "clone", folder, sound)

    def decode(self, folder: Path, frames: list[np.ndarray]) -> list[np.ndarray]:
        return self._call(REFERENCE, "decode", folder, frames)

    def close(self) -> None:
        self._executor.shutdown()
