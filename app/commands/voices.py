"""`antiphon voices`."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from app.commands._failure import fail
from app.commands._options import ModelOption, PipelineOption, settings_with
from engine import ConfigurationError, describe_pipeline


def voices(pipeline: PipelineOption = None, model: ModelOption = None) -> None:
    """List the voices of a pipeline."""
    settings = settings_with(pipeline=pipeline, model=model)
    try:
        description = describe_pipeline(settings.pipeline, settings.model, settings.cache_folder)
    except ConfigurationError as failure:
        fail(str(failure))
    table = Table("voice", "language", "description", "aliases", box=None, pad_edge=False)
    for voice in description.voices:
        table.add_row(voice.name, voice.language, voice.description, ", ".join(voice.aliases))
    Console().print(table)


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command()(voices)
