"""The line that `antiphon serve` prints to be tried, as a shell reads it."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.chat.schema import ChatRequest
from app.commands.serve import example
from app.speech.schema import SpeechRequest
from engine import PipelineDescription, VoiceDescription

ADDRESS = "http://127.0.0.1:8000"


def described(*routes: str, cloned: bool = False) -> PipelineDescription:
    voice = VoiceDescription("low", "A low hum.", "en", cloned=cloned)
    return PipelineDescription("hum", ("hum",), (voice,), 24_000, False, routes)


def tried(line: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """The URL and the body that curl would be given."""
    curl = """curl() { printf '%s\\0' "$@"; if [ "$5" = @- ]; then cat; fi; }\n"""
    made = subprocess.run(["bash", "-c", curl + line], cwd=folder, capture_output=True, check=True)
    url, *arguments, piped = made.stdout.decode().split("\0")
    data = arguments[arguments.index("-d") + 1]
    return url, json.loads(piped if data == "@-" else data)


def test_a_voice_is_given_a_text(tmp_path: Path) -> None:
    url, body = tried(example(ADDRESS, described("speech", "chat")), tmp_path)
    assert url == f"{ADDRESS}/v1/audio/speech"
    assert SpeechRequest.model_validate(body).voice == "low"


def test_a_cloned_voice_is_given_a_recording(tmp_path: Path) -> None:
    recording = b"a recording of somebody" * 20_000  # longer than an argument may be
    (tmp_path / "voice.wav").write_bytes(recording)
    _, body = tried(example(ADDRESS, described("speech", cloned=True)), tmp_path)
    request = SpeechRequest.model_validate(body)
    assert request.ref_audio is not None
    assert base64.b64decode(request.ref_audio) == recording


@pytest.mark.parametrize("routes", [("chat", "chat_text"), ("chat",)])
def test_what_only_answers_is_spoken_to(tmp_path: Path, routes: tuple[str, ...]) -> None:
    line = example(ADDRESS, described(*routes))
    url, body = tried(line, tmp_path)
    assert url == f"{ADDRESS}/v1/chat/completions"
    assert ChatRequest.model_validate(body).modalities == ["text", "audio"]
    assert shlex.split(line)[-2:] == ["-o", "answer.json"]
