"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from app.settings import Settings

PipelineOption = Annotated[str | None, typer.Option("--pipeline", help="The pipeline that speaks.")]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="A folder, or a name of the catalogue, instead of its own model."),
]
DeployOption = Annotated[
    Path | None, typer.Option("--deploy", help="A deployment YAML instead of its own.")
]


def settings_with(**overrides: object) -> Settings:
    """The settings of the environment, with options of the command line before them.

    Raises:
        typer.BadParameter: A value is wrong; the message names it.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as failure:
        mistake = failure.errors(include_url=False)[0]
        name = ".".join(str(part) for part in mistake["loc"])
        raise typer.BadParameter(
            f"{name} (or ANTIPHON_{name.upper()}): {mistake['msg']}, not {mistake['input']!r}."
        ) from None
