"""Starting the real engine from the command line."""

from __future__ import annotations

import warnings

from app.engine_port import EngineFactory, Progress, SpeechEngine
from app.settings import Settings


def engine_factory(settings: Settings) -> EngineFactory:
    """Returns what starts the engine that the settings describe."""

    async def start(progress: Progress) -> SpeechEngine:
        progress("Importing the engine")
        # Notices of vLLM to its own developers; nobody who runs a server can act on them.
        warnings.filterwarnings("ignore", category=FutureWarning, module="vllm")
        # Imports torch, so it must happen after the environment is prepared and only when needed.
        from engine.engine import AsyncOmniEngine

        return await AsyncOmniEngine.start(
            pipeline=settings.pipeline,
            model=settings.model,
            deploy=settings.deploy,
            cache_folder=settings.cache_folder,
            compile_ahead=settings.compile_ahead,
            progress=progress,
        )

    return start
