"""`antiphon doctor`: says what is wrong with an installation and how to mend it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from app.commands._options import settings_with
from app.doctor import examine
from app.doctor_finding import Finding, Severity
from app.settings import prepare_process_environment

_MARKS = {
    Severity.FINE: "[green]fine   [/green]",
    Severity.WARNING: "[yellow]warning[/yellow]",
    Severity.WRONG: "[red]wrong  [/red]",
}


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command("doctor")(doctor)


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON, for programs.")
    ] = False,
) -> None:
    """Say what is wrong with this installation and how to mend it."""
    settings = settings_with()
    # The libraries are looked at under the circumstances in which the server uses them.
    prepare_process_environment(settings)
    console = Console(stderr=as_json, highlight=False)
    findings = []
    with console.status("Looking at the machine, the models and the libraries (up to a minute)"):
        for finding in examine(settings):
            findings.append(finding)
            if not as_json:
                _print(console, finding)
    wrong = sum(finding.severity is Severity.WRONG for finding in findings)
    if as_json:
        content = {"ok": wrong == 0, "findings": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(content, indent=2))
    elif wrong:
        console.print(f"\n{wrong} of {len(findings)} checks found something that must be mended.")
    else:
        console.print("\nAntiphon can be served on this machine.")
    if wrong:
        raise typer.Exit(1)


def _print(console: Console, finding: Finding) -> None:
    """Prints one finding, with its mend on a line of its own."""
    console.print(f"{_MARKS[finding.severity]}  [bold]{finding.check}[/bold]: ", end="")
    console.print(finding.message, markup=False, soft_wrap=True)
    if finding.mend:
        console.print(f"         {finding.mend}", markup=False, soft_wrap=True)
