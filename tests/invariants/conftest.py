"""Engines for the tests of the invariants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.engine import AsyncOmniEngine
from tests.toys import Toy, started


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
