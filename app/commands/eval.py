"""`antiphon eval`: listens to a running server and says how well it speaks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.progress import track

from app.commands._failure import fail
from app.commands._options import settings_with
from app.evaluation.naturalness import JudgesError, judge, require_judges
from app.evaluation.report import Judgements, as_json, misheard, table
from app.evaluation.run import readings
from app.evaluation.sentences import Sentence, SentencesError, default_file, read_sentences
from app.evaluation.speaking import connect, served_model
from engine import ConfigurationError

TABLE_WIDTH = 160
"""Columns of a table that is not printed on a terminal."""


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command("eval")(evaluate)


def evaluate(
    url: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8000",
    sentences: Annotated[
        Path | None,
        typer.Option(help="Tab-separated columns id, kind and text, instead of its own sentences."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="So many sentences, from the whole file; 0 for all.")
    ] = 0,
    voice: Annotated[str, typer.Option(help="The voice.")] = "alloy",
    key: Annotated[str | None, typer.Option(help="API key, if the server wants one.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="A folder to keep each sentence's sound in.")
    ] = None,
    naturalness: Annotated[
        bool,
        typer.Option("--naturalness", help="Judge sound and speaker too; needs a source checkout."),
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Evaluate a running server: word errors by a speech recognizer, first audio, underruns."""
    # Imported here, since the recognizer is slow to import and other commands do without it.
    from app.evaluation.transcriber import Transcriber

    settings = settings_with()
    console = Console(stderr=json_output, highlight=False)
    try:
        chosen = read_sentences(sentences or default_file(), limit)
        if naturalness:
            require_judges()
        listener = Transcriber.installed(settings.cache_folder)
        with ExitStack() as stack:
            folder = keep
            if folder is None and naturalness:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            elif folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            client = stack.enter_context(connect(url, key))
            model = served_model(client)
            each = readings(client, chosen, voice, listener, folder)
            progress = track(each, "Speaking and listening", len(chosen), console=console)
            found = list(progress)
            judgements, failure = _judged(folder, chosen) if naturalness and folder else ({}, None)
    except (SentencesError, JudgesError, ConfigurationError, OSError) as error:
        fail(str(error))
    except httpx.HTTPError as error:
        fail(f"The server at {url} did not answer as it should: {error}")
    if json_output:
        print(json.dumps(as_json(model, found, judgements)))
    else:
        title = f"{model} as {voice}, {len(found)} sentences"
        page = Console(highlight=False, width=None if console.is_terminal else TABLE_WIDTH)
        page.print(table(title, found, judgements))
        for line in misheard(found):
            page.print(line, markup=False, soft_wrap=True)
    if failure is not None:
        fail(failure)


def _judged(folder: Path, sentences: Sequence[Sentence]) -> tuple[Judgements, str | None]:
    """What the judges say, or why they say nothing: the other figures are worth printing still."""
    try:
        return judge(folder, sentences), None
    except JudgesError as error:
        return {}, str(error)
