"""The tiny checkpoint and the reference that it came from."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from unittest import mock

import pytest
from transformers import Qwen2_5OmniForConditionalGeneration

from pipelines.qwen2_5_omni import sampling
from tests.checkpoints.qwen2_5_omni import save_tiny_checkpoint
from tests.pipelines.qwen2_5_omni.overhearing import MOST_CODES, Overheard


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen2_5_omni")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="session")
def reference(checkpoint: Path) -> Qwen2_5OmniForConditionalGeneration:
    return Qwen2_5OmniForConditionalGeneration.from_pretrained(checkpoint).eval()


@pytest.fixture(scope="module")
def overheard() -> Generator[Overheard]:
    """What stages make from now on; no speech is longer than `MOST_CODES`."""
    heard = Overheard()
    with contextlib.ExitStack() as stack:
        heard.listen(stack)
        stack.enter_context(mock.patch.object(sampling, "MOST_CODES", MOST_CODES))
        yield heard
