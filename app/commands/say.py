"""`antiphon say`: speaks one text without a server."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as ProgressBars

from app.audio.formats import AudioFormat
from app.commands._engine import engine_factory
from app.commands._failure import fail
from app.commands._options import DeployOption, ModelOption, PipelineOption, settings_with
from app.engine_port import SpeechEngine
from app.errors import ApiError
from app.identifiers import new_identifier
from app.settings import Settings, prepare_process_environment
from app.sinks import Sink, SinkError, check_folder, find_player, format_for, open_sink
from app.speech.command import resolve_voice
from app.speech.schema import LARGEST_SEED
from app.speech.warning import code_points
from engine import (
    ConfigurationError,
    EngineError,
    OmniRequest,
    SpeechParameters,
    TextInput,
    describe_pipeline,
)

OpenOutput = Callable[[int], Sink]
"""Opens where the audio goes, for samples of the given rate."""


class SayError(Exception):
    """The text was not spoken; the message says why."""


class Meter:
    """The progress bar: how much of the text was spoken, and how fast."""

    def __init__(self, bars: ProgressBars, characters: int) -> None:
        """`characters` is the length of the text."""
        self._bars = bars
        self._task = bars.add_task("starting", total=characters, figures="")
        self._began = 0.0
        self._first: float | None = None
        self._seconds = 0.0

    def step(self, step: str) -> None:
        """Shows a step of the start."""
        self._bars.update(self._task, description=step)

    def begin(self) -> None:
        """The engine is ready; the clock starts."""
        self._began = time.monotonic()
        self._bars.update(self._task, description="speaking")

    def advance(self, seconds: float, characters: int) -> None:
        """Shows audio that was made and how far into the text it reaches."""
        elapsed = time.monotonic() - self._began
        if self._first is None and seconds:
            self._first = elapsed
        self._seconds += seconds
        rate = self._seconds / elapsed if elapsed else 0.0
        first = f", first audio after {1000 * self._first:.0f} ms" if self._first else ""
        figures = f"{self._seconds:.1f} s of audio, {rate:.1f} x real time{first}"
        if characters:
            self._bars.update(self._task, completed=characters, figures=figures)
        else:
            self._bars.update(self._task, figures=figures)

    def finish(self, characters: int) -> None:
        """Fills the bar."""
        self._bars.update(self._task, description="done", completed=characters)


def say(
    text: Annotated[str, typer.Argument(help="What to say; - reads standard input.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="A file, or - for standard output. Else it is played."),
    ] = None,
    audio_format: Annotated[
        AudioFormat | None,
        typer.Option("--format", help="Instead of the one that the file's extension names."),
    ] = None,
    voice: Annotated[str | None, typer.Option("--voice", help="See `antiphon voices`.")] = None,
    speed: Annotated[float, typer.Option("--speed", min=0.25, max=4.0)] = 1.0,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=LARGEST_SEED, help="Makes the audio repeatable."),
    ] = None,
    pipeline: PipelineOption = None,
    model: ModelOption = None,
    deploy: DeployOption = None,
) -> None:
    """Speak a text into a file, to standard output or on the sound card."""
    settings = settings_with(pipeline=pipeline, model=model, deploy=deploy)
    console = Console(stderr=True)
    try:
        if output is not None:
            format_for(output, audio_format)
            check_folder(output)
        player = find_player() if output is None else []
        parameters = SpeechParameters(_known_voice(settings, voice), speed=speed, seed=seed)
        words = sys.stdin.read() if text == "-" else text
        prepare_process_environment(settings)
        with ProgressBars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[figures]}"),
            console=console,
        ) as bars:
            asyncio.run(
                _say(
                    settings,
                    words,
                    parameters,
                    lambda rate: open_sink(output, audio_format, player, rate),
                    Meter(bars, len(words)),
                    console,
                )
            )
    except (SayError, SinkError, ConfigurationError, EngineError) as failure:
        fail(str(failure))


async def _say(
    settings: Settings,
    text: str,
    parameters: SpeechParameters,
    open_output: OpenOutput,
    meter: Meter,
    console: Console,
) -> None:
    engine = await engine_factory(settings)(meter.step)
    try:
        report = engine.inspect(text)
        if not report.speakable:
            raise SayError("The text holds nothing that can be spoken.")
        if report.left_out:
            console.print(f"Left out: {' '.join(code_points(report.left_out))}", style="yellow")
        sink = open_output(engine.description.sample_rate)
        try:
            meter.begin()
            await _speak(engine, text, parameters, sink, meter)
            await sink.finish()
        except BaseException:
            sink.abandon()
            raise
        meter.finish(len(text))
    finally:
        await engine.close()


async def _speak(
    engine: SpeechEngine, text: str, parameters: SpeechParameters, sink: Sink, meter: Meter
) -> None:
    request = OmniRequest(new_identifier("say"), TextInput.whole(text), parameters)
    async with aclosing(engine.generate(request)) as chunks:
        async for chunk in chunks:
            if chunk.error is not None:
                raise SayError(chunk.error.message)
            if chunk.payload is not None:
                words = chunk.payload.words
                meter.advance(chunk.payload.seconds, words[-1].end_character if words else 0)
                await sink.write(chunk.payload.samples)


def _known_voice(settings: Settings, name: str | None) -> str | None:
    """The voice's own name, looked up before anything is loaded."""
    if name is None:
        return None
    description = describe_pipeline(settings.pipeline, settings.model, settings.cache_folder)
    try:
        return resolve_voice(name, description)
    except ApiError as failure:
        raise SayError(failure.message) from None


def register(cli: typer.Typer) -> None:
    """Adds the command."""
    cli.command()(say)
