"""`antiphon serve`."""

from __future__ import annotations

import gc
import json
import logging
import time
from typing import Annotated

import typer
from rich.console import Console

from app.commands._engine import engine_factory
from app.commands._failure import fail
from app.commands._options import DeployOption, ModelOption, PipelineOption, settings_with
from app.lifecycle import EngineLifecycle, EngineState
from app.server import Server, address_of, build_server, configure_logging, leave, listen
from app.settings import prepare_process_environment

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

    def ready(self, model: str, voice: str) -> None:
        """Prints where the API is and a line to try it."""
        self.step("Ready.")
        body = json.dumps({"model": model, "voice": voice, "input": "Hello! I speak as I go."})
        self._console.print(
            f"\nThe API is at [bold]{self._address}[/bold] (documentation: {self._address}/docs). "
            "Try it:\n",
            highlight=False,
            soft_wrap=True,
        )
        line = (
            f"curl {self._address}/v1/audio/speech -H 'Content-Type: application/json' "
            f"-d '{body}' -o hello.mp3"
        )
        self._console.print(f"  {line}\n", highlight=False, markup=False, soft_wrap=True)


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
        description = lifecycle.engine.description
        report.ready(description.models[0], description.voices[0].name)
    else:
        server.stop()


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command()(serve)
