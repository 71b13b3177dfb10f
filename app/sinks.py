"""Where `antiphon say` puts its audio: a file, standard output or the sound card."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO, Protocol

from app.audio.encoders import AudioEncoder, open_encoder
from app.audio.formats import OUTPUT_SAMPLE_RATE, AudioFormat
from app.audio.pcm import FloatSamples

_RATE = str(OUTPUT_SAMPLE_RATE)

PLAYERS = {
    "pw-cat": ["-p", "--raw", "--format", "s16", "--rate", _RATE, "--channels", "1", "-"],
    "paplay": ["--raw", "--format=s16le", f"--rate={_RATE}", "--channels=1"],
    "aplay": ["-q", "-t", "raw", "-f", "S16_LE", "-r", _RATE, "-c", "1", "-"],
    "ffplay": ["-loglevel", "error", "-nodisp", "-autoexit", "-f", "s16le", "-ar", _RATE, "-"],
    "play": ["-q", "-t", "raw", "-e", "signed", "-b", "16", "-r", _RATE, "-c", "1", "-"],
}
"""Programs that play raw samples from their standard input, the likeliest first."""


_EXTENSION_ALIASES = {"ogg": "opus", "raw": "pcm"}


class SinkError(Exception):
    """The audio cannot be put where it should go; the message says what would mend it."""


class Sink(Protocol):
    """Takes the audio of one utterance."""

    async def write(self, samples: FloatSamples) -> None:
        """Takes samples that follow the ones before; waits while the other end is behind."""
        ...

    async def finish(self) -> None:
        """Brings everything to its end: the file is whole, the sound was heard."""
        ...

    def abandon(self) -> None:
        """Frees what is held when the utterance does not come to its end."""
        ...


class FileSink:
    """Writes a file with true sizes in its header. Until it is whole there is none."""

    def __init__(self, path: Path, audio_format: AudioFormat, source_rate: int) -> None:
        """`source_rate` is what will be written, in samples a second."""
        self._path = path
        self._encoder = open_encoder(audio_format, source_rate, whole=True)

    async def write(self, samples: FloatSamples) -> None:
        """Encodes the samples on a worker thread."""
        await asyncio.to_thread(self._encoder.encode, samples)

    async def finish(self) -> None:
        """Writes the file.

        Raises:
            SinkError: It cannot be written.
        """
        try:
            await asyncio.to_thread(self._write_file)
        except OSError as failure:
            raise SinkError(f"Cannot write {self._path}: {failure.strerror}.") from failure

    def _write_file(self) -> None:
        unfinished = self._path.with_name(f".{self._path.name}.unfinished")
        try:
            unfinished.write_bytes(self._encoder.finish())
            unfinished.replace(self._path)
        finally:
            unfinished.unlink(missing_ok=True)
            self._encoder.close()

    def abandon(self) -> None:
        """Leaves no file behind."""
        self._encoder.close()


class StreamSink:
    """Writes encoded bytes as they come, to standard output."""

    def __init__(self, output: IO[bytes], audio_format: AudioFormat, source_rate: int) -> None:
        """`source_rate` is what will be written, in samples a second."""
        self._output = output
        self._encoder: AudioEncoder = open_encoder(audio_format, source_rate)

    async def write(self, samples: FloatSamples) -> None:
        """Encodes and writes on a worker thread."""
        await asyncio.to_thread(lambda: self._put(self._encoder.encode(samples)))

    async def finish(self) -> None:
        """Writes the rest."""
        await asyncio.to_thread(lambda: self._put(self._encoder.finish()))
        self._encoder.close()

    def abandon(self) -> None:
        """Frees the encoder."""
        self._encoder.close()

    def _put(self, data: bytes) -> None:
        try:
            self._output.write(data)
            self._output.flush()
        except BrokenPipeError as failure:
            raise SinkError("Nobody reads the standard output any more.") from failure


class PlayerSink:
    """Plays on the sound card through a program of the system."""

    def __init__(self, command: list[str], source_rate: int) -> None:
        """Starts the program; `source_rate` is what will be written, in samples a second."""
        self._name = command[0]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        self._stream = StreamSink(self._process.stdin, AudioFormat.PCM, source_rate)

    async def write(self, samples: FloatSamples) -> None:
        """Hands samples to the program, which takes them at the pace of the sound card.

        Raises:
            SinkError: The program ended.
        """
        try:
            await self._stream.write(samples)
        except SinkError as failure:
            raise SinkError(f"{self._name} ended before the sound did.") from failure

    async def finish(self) -> None:
        """Waits until the last sample was heard.

        Raises:
            SinkError: The program says that it failed.
        """
        await asyncio.to_thread(self._process.communicate)
        if self._process.returncode:
            raise SinkError(f"{self._name} ended with status {self._process.returncode}.")

    def abandon(self) -> None:
        """Stops the sound."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            # What is still buffered cannot be written any more.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


def find_player() -> list[str]:
    """The command that plays raw samples from its standard input.

    Raises:
        SinkError: This machine has none of the known programs.
    """
    for name, arguments in PLAYERS.items():
        if shutil.which(name):
            return [name, *arguments]
    raise SinkError(
        f"No program that plays sound was found ({', '.join(PLAYERS)}). Write to a file with "
        "'-o speech.wav', or install one, on Debian with 'apt install alsa-utils'."
    )


def format_for(output: str, audio_format: AudioFormat | None) -> AudioFormat:
    """The format of an output: the one that was asked for, else the file's extension's.

    Raises:
        SinkError: The extension says nothing.
    """
    if audio_format is not None:
        return audio_format
    if output == "-":
        return AudioFormat.WAV
    extension = Path(output).suffix.lower().removeprefix(".")
    extension = _EXTENSION_ALIASES.get(extension, extension)
    if extension in AudioFormat.__members__.values():
        return AudioFormat(extension)
    raise SinkError(
        f"The extension of {output!r} is no audio format; use one of "
        f"{', '.join(AudioFormat)}, or say it with --format."
    )


def check_folder(output: str) -> None:
    """Looks whether a file can be written there at all, before anything is spoken.

    Raises:
        SinkError: There is no such folder.
    """
    folder = Path(output).parent
    if output != "-" and not folder.is_dir():
        raise SinkError(f"Cannot write {output}: there is no folder {folder}.")


def open_sink(
    output: str | None, audio_format: AudioFormat | None, player: list[str], source_rate: int
) -> Sink:
    """Opens where the audio goes.

    Args:
        output: A path, `-` for standard output, or None for the sound card.
        audio_format: The format that was asked for, if one was.
        player: The command of `find_player`, for the sound card.
        source_rate: Samples a second of what will be written.
    """
    if output is None:
        return PlayerSink(player, source_rate)
    if output == "-":
        return StreamSink(sys.stdout.buffer, format_for(output, audio_format), source_rate)
    return FileSink(Path(output), format_for(output, audio_format), source_rate)
