"""`antiphon bench`: measures a running server as its clients see it."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.table import Table

from app.commands._failure import fail
from app.load import Summary, load, summarise


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command("bench")(bench)


def bench(
    url: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8000",
    clients: Annotated[str, typer.Option(help="Numbers of clients, with commas.")] = "1,4,8,16,24",
    rounds: Annotated[int, typer.Option(min=1, help="Sentences a client speaks.")] = 4,
    voice: Annotated[str, typer.Option(help="The voice.")] = "alloy",
    key: Annotated[str | None, typer.Option(help="API key, if the server wants one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure a running server: first audio, underruns, real-time factor, at rising load."""
    counts = _counts(clients)
    console = Console(stderr=as_json, highlight=False)
    summaries: list[Summary] = []
    try:
        for count in counts:
            with console.status(f"{count} clients, {rounds} sentences each"):
                started = time.perf_counter()
                utterances = asyncio.run(load(url, count, rounds, voice, key))
                summaries.append(summarise(count, utterances, time.perf_counter() - started))
    except httpx.HTTPError as error:
        fail(f"The server at {url} did not answer as it should: {error}")
    if as_json:
        print(json.dumps([asdict(summary) for summary in summaries]))
    else:
        console.print(_table(summaries))


def _counts(clients: str) -> list[int]:
    """The numbers of clients, of which each is a load of its own."""
    parts = [part.strip() for part in clients.split(",")]
    for part in parts:
        if not part.isdecimal() or int(part) == 0:
            message = f"{part!r} is no number of clients; give whole numbers from 1, such as 1,8."
            raise typer.BadParameter(message, param_hint="--clients")
    return [int(part) for part in parts]


def _table(summaries: list[Summary]) -> Table:
    table = Table(title="As clients see it")
    for title in ("clients", "first audio p50", "p95", "underruns", "RTF", "audio s / s"):
        table.add_column(title, justify="right")
    for summary in summaries:
        table.add_row(
            str(summary.clients),
            f"{1000 * summary.first_audio_median:.0f} ms",
            f"{1000 * summary.first_audio_p95:.0f} ms",
            f"{summary.underruns} ({summary.silence:.2f} s)",
            f"{summary.real_time_factor:.2f}",
            f"{summary.audio_per_second:.1f}",
        )
    return table
