"""How every command ends that cannot do what it was asked for."""

from __future__ import annotations

from typing import NoReturn

import typer
from rich.console import Console


def fail(message: str) -> NoReturn:
    """Ends the command with a sentence on standard error."""
    Console(stderr=True, highlight=False).print(message, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1)
