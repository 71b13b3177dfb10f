"""`antiphon serve`."""

from __future__ import annotations

import gc
import json
import logging
import time
from typing import Annotated, Any

import typer
from rich.console import Console

from app.commands._engine import engine_factory
from app.commands._failure import fail
from app.commands._options import DeployOption, ModelOption, PipelineOption, settings_with
from app.lifecycle import EngineLifecycle, EngineState
from app.server import Server, address_of, build_server, configure_logging, leave, listen
from app.settings import prepare_process_environment
from engine import PipelineDescription

logger = logging.getLogger(__name__)


class StartReport:
    """Tells the person at the terminal how the start goes and how it ended."""

    def __init__(self, console: Console, address: str) -> None:
        """`address` is the base URL that is told at the end."""
        self._console = console
        self._address = address
        self._began = time.monotonic()

    def step(self, step: str) -> None:
        """Prints one step of the start."""
        elapsed = time.monotonic() - self._began
        self._console.print(f"[dim]{elapsed:6.1f} s[/dim]  {step}", highlight=False)

    def ready(self, description: PipelineDescription) -> None:
        """Prints where the API is and a line to try it."""
        self.step("Ready.")
        self._console.print(
            f"\nThe API is at [bold]{self._address}[/bold] (documentation: {self._address}/docs). "
            "Try it:\n",
            highlight=False,
            soft_wrap=True,
        )
        line = example(self._address, description)
        self._console.print(f"  {line}\n", highlight=False, markup=False, soft_wrap=True)


def example(address: str, description: PipelineDescription) -> str:
    """A line for a shell that makes a server speak.

    Args:
        address: The server's base URL.
        description: What it serves: one that reads texts aloud is given one, another is spoken to.
    """
    model, voice = description.models[0], description.voices[0]
    if "speech" in description.routes:
        path, file = "audio/speech", "hello.mp3"
        body: dict[str, Any] = {
            "model": model,
            "voice": voice.name,
            "input": "Hello! I speak as I go.",
        }
    else:
        path, file = "chat/completions", "answer.json"
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "Hello! Who are you?"}],
            "modalities": ["text", "audio"],
            "audio": {"voice": voice.name, "format": "mp3"},
        }
    curl = f"curl {address}/v1/{path} -H 'Content-Type: application/json'"
    if not voice.cloned:
        return f"{curl} -d '{json.dumps(body)}' -o {file}"
    # By way of a pipe, since a recording is longer than an argument may be.
    data = json.dumps({**body, "ref_audio": "%s"})
    return f"printf '{data}' \"$(base64 -w0 voice.wav)\" | {curl} -d @- -o {file}"


def serve(
    port: Annotated[int | None, typer.Option("--port", help="TCP port; 0 for a free one.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    pipeline: PipelineOption = None,
    model: ModelOption = None,
    deploy: DeployOption = None,
) -> None:
    """Start the server. Further settings are environment variables that begin with ANTIPHON_."""
    # What is imported and loaded stays; searching it for garbage meanwhile would take a second.
    gc.disable()
    settings = settings_with(port=port, host=host, pipeline=pipeline, model=model, deploy=deploy)
    prepare_process_environment(settings)
    configure_logging(settings.log_level)
    console = Console(stderr=True)
    try:
        listener = listen(settings)
    except OSError as failure:
        fail(str(failure.strerror))
    report = StartReport(console, address_of(listener))
    lifecycle = EngineLifecycle(
        engine_factory(settings),
        progress=report.step,
        settled=lambda: _settled(lifecycle, server, report),
        process_ends=True,
    )
    server = build_server(settings, lifecycle)
    server.run(sockets=[listener])
    if lifecycle.failure is not None:
        console.print(f"The engine did not start: {lifecycle.failure}", style="red", markup=False)
        leave(1)
    leave(0)


def _settled(lifecycle: EngineLifecycle, server: Server, report: StartReport) -> None:
    gc.enable()
    if lifecycle.state is EngineState.READY:
        report.ready(lifecycle.engine.description)
    else:
        server.stop()


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command()(serve)
