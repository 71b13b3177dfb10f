"""`antiphon models`: lists, fetches and verifies the models of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
from rich.progress import Progress as ProgressBars
from rich.table import Table

from app.commands._failure import fail
from app.commands._options import settings_with
from engine import ConfigurationError
from engine.catalogue import Catalogue

models = typer.Typer(help="List, fetch and verify models.", no_args_is_help=True)

Names = Annotated[list[str] | None, typer.Argument(help="Models; see `antiphon models list`.")]
Occasions = Annotated[
    list[str] | None,
    typer.Option("--for", help="All models that this is wanted for: serve, test, conversation."),
]


def register(cli: typer.Typer) -> None:
    """Adds the commands."""
    cli.add_typer(models, name="models")


@models.command("list")
def list_models() -> None:
    """List the models that are known, and which are here."""
    catalogue = _catalogue()
    table = Table("model", "here", "size", "licence", "what it is", box=None)
    for model in catalogue.models:
        problem = catalogue.problem(model.name)
        here = "yes" if problem is None else "damaged" if catalogue.is_fetched(model.name) else "no"
        size = f"{model.entry.size / 1e6:.0f} MB" if model.entry.size else ""
        table.add_row(model.name, here, size, model.entry.licence, model.entry.summary)
    Console().print(table)


@models.command()
def fetch(names: Names = None, occasions: Occasions = None) -> None:
    """Get models from the first source that has them; models that are whole are left alone."""
    catalogue = _catalogue()
    console = Console(highlight=False)
    for name in _chosen(catalogue, names, occasions):
        if catalogue.problem(name) is None:
            console.print(f"{name} is here.")
            continue
        try:
            folder = _fetch_with_progress(catalogue, name, console)
        except ConfigurationError as error:
            fail(str(error))
        except OSError as error:
            fail(
                f"{name} cannot be kept in {settings_with().cache_folder}: "
                f"{error.strerror or error}. "
                "Make it writable, or name another with ANTIPHON_CACHE_FOLDER."
            )
        console.print(f"{name} is here now, in {folder}.", soft_wrap=True)


@models.command()
def verify(names: Names = None, occasions: Occasions = None) -> None:
    """Compare models with their SHA-256; without names, all that are here."""
    catalogue = _catalogue()
    chosen = _chosen(catalogue, names, occasions) if names or occasions else None
    console = Console(highlight=False)
    damaged = False
    for name in chosen or [model.name for model in catalogue.models]:
        problem = catalogue.problem(name)
        if problem is None:
            console.print(f"{name}: whole")
        elif chosen or catalogue.is_fetched(name):
            damaged = True
            console.print(f"{name}: {problem}. {catalogue.model(name).mend}.", soft_wrap=True)
    if damaged:
        raise typer.Exit(1)


def _fetch_with_progress(catalogue: Catalogue, name: str, console: Console) -> Path:
    """Fetches a model; shows a bar on a terminal, and a line for each step elsewhere."""
    if not console.is_terminal:
        return catalogue.fetch(name, _LineForEachStep(console, name))
    columns = [TextColumn("  {task.description}"), BarColumn(), TaskProgressColumn()]
    with ProgressBars(*columns, console=console, transient=True) as bars:
        return catalogue.fetch(name, _BarForEachStep(bars, name))


class _LineForEachStep:
    """Prints each step of fetching once, when it begins."""

    def __init__(self, console: Console, name: str) -> None:
        """Prints nothing yet."""
        self._console = console
        self._name = name
        self._last: str | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Prints a step that has not been printed."""
        if what != self._last:
            self._last = what
            self._console.print(f"  {self._name}: {what}", soft_wrap=True)


class _BarForEachStep:
    """Shows each step of fetching as a bar of its own."""

    def __init__(self, bars: ProgressBars, name: str) -> None:
        """Shows nothing yet."""
        self._bars = bars
        self._name = name
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        """Moves the bar of a step."""
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(f"{self._name}: {what}")
        self._bars.update(self._tasks[what], completed=done, total=total or None)


def _catalogue() -> Catalogue:
    """The installed catalogue."""
    try:
        return Catalogue.installed(settings_with().cache_folder)
    except ConfigurationError as error:
        fail(str(error))


def _chosen(
    catalogue: Catalogue, names: list[str] | None, occasions: list[str] | None
) -> list[str]:
    """The names of the models that the command line chooses."""
    if not names and not occasions:
        fail("Name models, or say what for: --for serve.")
    try:
        return [model.name for model in catalogue.select(names or [], occasions or [])]
    except ConfigurationError as error:
        fail(str(error))
