"""The command line with the humming engine: `python -m tests.app.humming_cli serve …`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from unittest.mock import patch

from app.cli import cli
from app.engine_port import EngineFactory, Progress
from app.settings import Settings
from tests.app.doubles import HummingEngine


def _factory(_settings: Settings) -> EngineFactory:
    pace = float(os.environ.get("HUMMING_PACE", "0"))

    async def start(progress: Progress) -> HummingEngine:
        if os.environ.get("HUMMING_STUCK"):
            progress("Loading for a long time")
            await _cannot_be_stopped()
        return HummingEngine(pace=pace)

    return start


async def _cannot_be_stopped() -> None:
    """Like a thread that is deep in loading a model."""
    for _ in range(100):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)


if __name__ == "__main__":
    with patch("app.commands.serve.engine_factory", _factory):
        cli()
