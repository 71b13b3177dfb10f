"""The tiny checkpoint, the reference that was loaded from it, and what the reference answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import Qwen3OmniMoeForConditionalGeneration

from tests.checkpoints.qwen3_omni import save_tiny_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny checkpoint."""
    folder = tmp_path_factory.mktemp("qwen3-omni")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="session")
def reference(checkpoint: Path) -> Qwen3OmniMoeForConditionalGeneration:
    """The reference implementation with the checkpoint's weights, in fp32."""
    return Qwen3OmniMoeForConditionalGeneration.from_pretrained(checkpoint, dtype="float32").eval()
