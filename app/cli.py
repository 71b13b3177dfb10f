"""The command line `antiphon`."""

from __future__ import annotations

import typer

from app.commands import register_all

cli = typer.Typer(
    name="antiphon",
    help="A streaming-first speech server: text in, speech out while it is being made.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
register_all(cli)


@cli.callback()
def _root() -> None:
    """A streaming-first speech server: text in, speech out while it is being made."""


def main() -> None:
    """The entry point of the installed command."""
    cli()


if __name__ == "__main__":
    main()
