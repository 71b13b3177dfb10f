"""An engine with the tiny checkpoint, and what its stages make."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from engine import AudioPayload
from engine.autoregressive import AutoregressiveReplica
from engine.engine import AsyncOmniEngine
from engine.text_replica import TextReplica
from pipelines.qwen2_5_omni.pipeline import PIPELINE
from tests.toys import sound

MOST_CODES = 40


class Overheard:
    """What the engine's stages made, by request."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[int]] = {}
        self.codes: dict[str, list[int]] = {}

    def listen(self, stack: contextlib.ExitStack) -> None:
        converted, stepped = TextReplica._convert, AutoregressiveReplica._convert

        def of_text(replica: TextReplica, output: Any) -> Any:
            self.tokens.setdefault(output.request_id, []).extend(output.new_token_ids)
            return converted(replica, output)

        def of_steps(replica: AutoregressiveReplica, output: Any) -> Any:
            made = stepped(replica, output)
            if made.output is not None:
                codes = self.codes.setdefault(output.request_id, [])
                codes.append(int(made.output.codes[0]))
            return made

        stack.enter_context(mock.patch.object(TextReplica, "_convert", of_text))
        stack.enter_context(mock.patch.object(AutoregressiveReplica, "_convert", of_steps))


@contextlib.asynccontextmanager
async def running(
    checkpoint: Path, folder: Path, deploy: Path | None = None
) -> AsyncGenerator[AsyncOmniEngine]:
    """The engine with a deployment, the pipeline's own if none is named."""
    with mock.patch("engine.engine.load_pipeline", return_value=PIPELINE):
        engine = await AsyncOmniEngine.start(
            pipeline=PIPELINE.name,
            model=str(checkpoint),
            deploy=deploy,
            cache_folder=folder,
            compile_ahead=False,
        )
    try:
        yield engine
    finally:
        await engine.close()


def samples_of(chunks: list[Any]) -> np.ndarray:
    return sound([chunk for chunk in chunks if isinstance(chunk.payload, AudioPayload)])
