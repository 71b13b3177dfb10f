"""`antiphon say`, `voices` and `settings`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from typer.testing import CliRunner

from app.audio.formats import AudioFormat
from app.cli import cli
from app.settings import Settings
from app.sinks import PLAYERS, PlayerSink, SinkError, format_for
from tests.app.decoding import decode
from tests.app.doubles import WORD_SAMPLES, HummingEngine


@dataclass
class Done:
    returncode: int
    stdout: bytes
    stderr: bytes


def _run(*arguments: str, text: bytes = b"", **environment: str) -> Done:
    """Runs the command line in this process, with the humming engine."""
    with (
        patch("app.commands.say.engine_factory", lambda _settings: HummingEngine.start),
        patch("app.commands.say.prepare_process_environment"),
    ):
        result = CliRunner().invoke(
            cli, list(arguments), input=text, env={"COLUMNS": "200", **environment}
        )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout_bytes, result.stderr_bytes)


@pytest.mark.parametrize("extension", ["wav", "mp3", "opus", "ogg", "aac", "flac"])
def test_the_extension_says_the_format(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"speech.{extension}"
    done = _run("say", "one two three", "-o", str(path))
    assert done.returncode == 0, done.stderr
    decoded, rate = decode(path.read_bytes())
    assert abs(len(decoded) * 24_000 / rate - 3 * WORD_SAMPLES) <= 1105 + 2 * 1152
    assert b"x real time" in done.stderr
    assert done.stdout == b""


def test_a_wav_file_has_its_true_size(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    assert _run("say", "one two", "-o", str(path)).returncode == 0
    data = path.read_bytes()
    assert int.from_bytes(data[40:44], "little") == len(data) - 44 == 2 * 2 * WORD_SAMPLES


def test_text_from_standard_input_and_audio_to_standard_output() -> None:
    done = _run("say", "-", "-o", "-", "--format", "pcm", text=b"one two three\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) == 3 * 2 * WORD_SAMPLES


def test_standard_output_gets_wav_unless_told_otherwise() -> None:
    assert _run("say", "one", "-o", "-").stdout.startswith(b"RIFF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one", "-o", "speech.txt"], "no audio format"),
        (["one", "-o", "speech.wav", "--voice", "nobody"], "no voice 'nobody'"),
        (["?!", "-o", "speech.wav"], "nothing that can be spoken"),
        (["one FAIL", "-o", "speech.wav"], "fell over"),
        (["one", "-o", "missing/speech.wav"], "there is no folder missing"),
    ],
)
def test_failures_are_one_plain_sentence_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = _run("say", *arguments)
    assert done.returncode == 1
    assert message in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_without_a_player_it_says_what_to_do() -> None:
    done = _run("say", "one", PATH="/nonexistent")
    assert done.returncode == 1
    assert "-o speech.wav" in done.stderr.decode()


def test_a_player_gets_the_samples(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    player = tmp_path / next(iter(PLAYERS))
    player.write_text(f"#!/bin/sh\ncat > {heard}\n")
    player.chmod(0o755)
    done = _run("say", "one two", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert heard.stat().st_size == 2 * 2 * WORD_SAMPLES


@pytest.mark.asyncio
async def test_a_player_that_fails_is_named() -> None:
    sink = PlayerSink(["sh", "-c", "exit 3"], 24_000)

    async def write_much() -> None:
        for _ in range(200):
            await sink.write(np.zeros(24_000, np.float32))

    with pytest.raises(SinkError, match="sh ended"):
        await write_much()
    sink.abandon()


def test_formats_of_outputs() -> None:
    assert format_for("a.OGG", None) is AudioFormat.OPUS
    assert format_for("a.raw", None) is AudioFormat.PCM
    assert format_for("-", None) is AudioFormat.WAV
    assert format_for("a.txt", AudioFormat.FLAC) is AudioFormat.FLAC


def test_voices_are_listed() -> None:
    done = _run("voices")
    assert done.returncode == 0, done.stderr
    assert b"lark" in done.stdout


def test_every_setting_is_listed() -> None:
    listed = _run("settings").stdout.decode()
    for name in Settings.model_fields:
        assert f"ANTIPHON_{name.upper()}" in listed
