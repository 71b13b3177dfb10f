"""What all tests share: a prepared process, and the real server with the embedded voice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings

from app.settings import Settings, prepare_process_environment

# Before anything imports torch: what it and vLLM read from the environment is read once.
prepare_process_environment(Settings())

# How fast examples are made says something about the machine, and nothing about the code.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

ENVIRONMENT = {**os.environ, "ANTIPHON_COMPILE_AHEAD": "false"}
"""Compiling for a next start would only take time from the tests."""

START_SECONDS = 240.0
"""A first start may compile, and test machines are busy."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def running_server() -> Generator[str]:
    """The base URL of `antiphon serve`, ready, with its defaults and the pipeline `lark`."""
    with antiphon_serve() as base_url:
        yield base_url


@pytest.fixture(scope="session")
def conversing_server() -> Generator[str]:
    """The base URL of `antiphon serve`, ready, with the pipeline `conversation`."""
    with antiphon_serve("--pipeline", "conversation") as base_url:
        yield base_url


@contextmanager
def antiphon_serve(*arguments: str) -> Generator[str]:
    """Runs the server as a process of its own until the block ends, and looks how it ended."""
    port = _free_port()
    base_url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), *arguments]
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=root, env=ENVIRONMENT
        )
        try:
            if not _wait_until_ready(process, base_url):
                log.seek(0)
                pytest.fail(f"The server did not become ready. It said:\n{log.read()}")
            yield base_url
        finally:
            process.terminate()
            try:
                status = process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
        log.seek(0)
        assert status == 0, f"The server ended with status {status}. It said:\n{log.read()}"


def _wait_until_ready(process: subprocess.Popen[bytes], base_url: str) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{base_url}/ready", timeout=5).status_code == httpx.codes.OK:
                return True
        except httpx.TransportError:
            pass  # nothing listens yet
        time.sleep(0.2)
    return False
