"""The tiny checkpoint, and what is loaded from it: the reference, its processor, a Thinker."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine.deploy_config import StageDeployment
from engine.text_replica import TextReplica
from pipelines.qwen.hearing import Hearing
from pipelines.qwen3_omni.hearing import hearing_of
from pipelines.qwen3_omni.pipeline import build_thinker
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


@pytest.fixture(scope="session")
def hearing(checkpoint: Path) -> Hearing:
    """The checkpoint's processor."""
    return hearing_of(checkpoint)


@pytest.fixture(scope="module")
def thinker(checkpoint: Path) -> Generator[TextReplica]:
    """A replica of the Thinker."""
    deployment = StageDeployment(max_requests=8, max_steps=1024, compile="never")
    replica = build_thinker(checkpoint, deployment)
    assert isinstance(replica, TextReplica)
    yield replica
    replica.close()
