"""Runs the real server on a real socket in a thread, with any engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from app.engine_port import EngineFactory
from app.lifecycle import EngineLifecycle
from app.server import Server, address_of, build_server, listen
from app.settings import Settings
from tests.app.doubles import HummingEngine


@dataclass
class Serving:
    """A running server."""

    base_url: str
    server: Server
    lifecycle: EngineLifecycle
    engine: HummingEngine

    @property
    def websocket_url(self) -> str:
        return self.base_url.replace("http://", "ws://")

    def realtime_sessions(self) -> int:
        """How many realtime sessions the server has."""
        return self.server.config.app.state.antiphon.realtime.sessions  # type: ignore[union-attr]


@contextmanager
def serving(
    engine: HummingEngine | None = None,
    *,
    factory: EngineFactory | None = None,
    **overrides: object,
) -> Generator[Serving]:
    """Serves the humming engine, or what a factory makes on the server's loop, for a block."""
    humming = engine or HummingEngine()

    async def start(_progress: Callable[[str], None]) -> HummingEngine:
        return humming

    factory = factory or start
    settings = Settings.model_validate(
        {
            "port": 0,
            "shutdown_seconds": 2.0,
            "static_folder": "/nonexistent",
            "ear": False,
            **overrides,
        }
    )
    settled = threading.Event()
    lifecycle = EngineLifecycle(factory, settled=settled.set)
    server = build_server(settings, lifecycle)
    server.capture_signals = _no_signals  # type: ignore[method-assign]
    listener = listen(settings)
    base_url = address_of(listener)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    seconds = 10 if factory is start else 120
    assert settled.wait(seconds)
    try:
        yield Serving(base_url, server, lifecycle, humming)
    finally:
        server.stop()
        thread.join(seconds)
        assert not thread.is_alive()


@contextmanager
def _no_signals() -> Generator[None]:
    """Signals can only be handled by the main thread, which runs the tests."""
    yield
