"""The subcommands of `antiphon`: each public module has `register`, which adds its own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

import typer


def register_all(cli: typer.Typer) -> None:
    """Adds every subcommand, in alphabetical order of the modules."""
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        if not module.startswith("_"):
            register: Callable[[typer.Typer], None]
            register = importlib.import_module(f"{__name__}.{module}").register
            register(cli)
