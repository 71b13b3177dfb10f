"""The tiny checkpoint and the reference that it came from."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import Qwen2_5OmniForConditionalGeneration

from tests.checkpoints.qwen2_5_omni import save_tiny_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen2_5_omni")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="session")
def reference(checkpoint: Path) -> Qwen2_5OmniForConditionalGeneration:
    return Qwen2_5OmniForConditionalGeneration.from_pretrained(checkpoint).eval()
