"""`antiphon settings`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import typer
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Table

from app.settings import Settings


def settings() -> None:
    """List every setting: its environment variable, its default and what it means."""
    table = Table("variable", "default", "meaning", box=None, pad_edge=False, show_lines=True)
    for name, field in Settings.model_fields.items():
        table.add_row(f"ANTIPHON_{name.upper()}", _default(field), field.description)
    Console().print(table)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value)
    if isinstance(value, Enum | Path):
        return str(value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command()(settings)
