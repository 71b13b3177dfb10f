"""Engines for the tests of the invariants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.engine import AsyncOmniEngine
from pipelines.lark.pipeline import PIPELINE
from tests.toys import Toy, started

VOICE_DEPLOYMENT: dict[str, Any] = {
    "stages": {
        "talker": {"max_requests": 32, "key_value_cache_bytes": 32 * 2**20},
        "code2wav": {"max_requests": 32, "input_limit": 96},
    }
}


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest_asyncio.fixture
async def engine(toy: Toy, tmp_path: Path) -> AsyncIterator[AsyncOmniEngine]:
    """The real runtime with a pipeline that has no models; nothing may be left in it."""
    async with started(toy.pipeline, tmp_path) as engine:
        toy.stepped.clear()
        yield engine
        toy.gate.set()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def voice(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AsyncOmniEngine]:
    """The real runtime with the real embedded voice, its Talker on a vLLM engine core."""
    async with started(PIPELINE, tmp_path_factory.mktemp("voice"), VOICE_DEPLOYMENT) as engine:
        yield engine
