"""Runs the application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Generator
from types import FrameType
from typing import NoReturn

import uvicorn

from app.application import create_application
from app.connection import http_protocol, websocket_protocol
from app.lifecycle import EngineLifecycle
from app.settings import LogLevel, Settings

_BACKLOG = 2048
_LISTENING_MENDS = {
    errno.EADDRINUSE: " Another program has it; --port (make serve PORT=) names a free one.",
    errno.EACCES: " Ports below 1024 are the system's; --port (make serve PORT=) names another.",
    errno.EADDRNOTAVAIL: " This machine has no such address; 0.0.0.0 stands for all that it has.",
}

_KEEP_ALIVE_SECONDS = 75
"""Longer than the usual minute of a proxy, so that it is never the server that closes first."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """A server whose end by a signal is a normal end: the process goes on and exits with 0."""

    def __init__(self, config: uvicorn.Config, lifecycle: EngineLifecycle) -> None:
        """`lifecycle` is that of the engine behind the application."""
        super().__init__(config)
        self._lifecycle = lifecycle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handles the signals while the server runs and does not raise them again afterwards."""
        before = {number: signal.signal(number, self.handle_exit) for number in _STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end; called by a signal, between two instructions of the main thread."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        """Waits for the end; uvicorn's own looks ten times a second whether it has come."""
        self._loop = asyncio.get_running_loop()
        # The date is no part of them: it is added when a response begins.
        self.server_state.default_headers = self.config.encoded_headers
        if not self.should_exit:
            await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the connections and the engine."""
        await super().shutdown(sockets)
        if self._lifecycle.stuck:
            # Nothing was served yet and nothing is left to be saved, while an orderly end would
            # wait until the models are loaded.
            leave(0)

    def stop(self) -> None:
        """Begins an orderly end, as a signal would."""
        self.should_exit = True
        self._ending.set()


def leave(status: int) -> NoReturn:
    """Ends the process where nothing is left to be saved.

    With vLLM loaded, taking the interpreter apart in an orderly way would take seconds.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def configure_logging(level: LogLevel) -> None:
    """Sends the log to standard error."""
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    if level is not LogLevel.DEBUG:
        # What vLLM says while it is imported, before it reads its own setting.
        logging.getLogger("vllm").setLevel(logging.ERROR)
    if level is LogLevel.INFO:
        # Uvicorn's account of its own steps says nothing that `serve` does not say better.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def listen(settings: Settings) -> socket.socket:
    """Opens the listening socket.

    Raises:
        OSError: The address cannot be used; the message names it.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit this. Without it the system would take in minutes of audio for a
        # client that stopped reading, and the server would not notice.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.socket_send_buffer_bytes)
        listener.bind((settings.host, settings.port))
        # Clients that come before the event loop runs wait for it instead of being refused.
        listener.listen(_BACKLOG)
    except OSError as failure:
        listener.close()
        mend = _LISTENING_MENDS.get(failure.errno or 0, "")
        raise OSError(
            failure.errno,
            f"Cannot listen on {settings.host}:{settings.port}: {failure.strerror}.{mend}",
        ) from failure
    return listener


def address_of(listener: socket.socket) -> str:
    """The base URL of a listening socket, with a host that a client on this machine can use."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def build_server(settings: Settings, lifecycle: EngineLifecycle) -> Server:
    """Makes the server; `Server.run` with the listening socket serves until it is stopped."""
    config = uvicorn.Config(
        create_application(settings, lifecycle),
        loop="uvloop",
        http=http_protocol(settings.write_buffer_bytes),
        ws=websocket_protocol(settings.write_buffer_bytes),
        ws_max_size=settings.websocket_frame_bytes,
        ws_ping_interval=settings.websocket_ping_seconds,
        ws_ping_timeout=settings.websocket_pong_seconds,
        # Compressing base64 of sound costs much and saves little.
        ws_per_message_deflate=False,
        lifespan="on",
        backlog=_BACKLOG,
        log_config=None,
        access_log=settings.log_level is LogLevel.DEBUG,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds),
    )
    return Server(config, lifecycle)
