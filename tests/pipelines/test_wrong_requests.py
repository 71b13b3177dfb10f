"""What clients ask of the published models' pipelines and cannot have: a 400 with field and mend.

By running servers with tiny checkpoints. Each wrong request is followed by a good one.
"""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.conftest import antiphon_serve

Body = dict[str, Any]

SPEECH, CHAT = "/v1/audio/speech", "/v1/chat/completions"
SHORT = {"max_tokens": 4}
SPOKEN = {"modalities": ["text", "audio"], "audio": {"voice": "ethan", "format": "pcm16"}}


def recording(seconds: float) -> str:
    file = io.BytesIO()
    samples = 0.3 * np.sin(np.arange(int(16_000 * seconds)) / 20)
    soundfile.write(file, samples, 16_000, format="WAV", subtype="PCM_16")
    return base64.b64encode(file.getvalue()).decode()


def picture(width: int, height: int) -> str:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def said(*parts: Body) -> Body:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def sound(data: str) -> Body:
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def seen(url: str) -> Body:
    return {"type": "image_url", "image_url": {"url": url}}


def tool(parameters: Body) -> Body:
    function = {"name": "look_up", "parameters": parameters}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}


@pytest.fixture(scope="module", params=["qwen3_tts", "qwen3_omni", "qwen2_5_omni"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[str, str]]:
    """A pipeline's name and the base URL of a server with its tiny checkpoint."""
    name: str = request.param
    folder = tmp_path_factory.mktemp(name) / "checkpoint"
    variant = ["base"] if name == "qwen3_tts" else []
    made = [sys.executable, "-m", f"tests.checkpoints.{name}", str(folder), *variant]
    root = Path(__file__).resolve().parent.parent.parent
    subprocess.run(made, check=True, cwd=root, capture_output=True)
    with antiphon_serve("--pipeline", name, "--model", str(folder)) as base_url:
        yield name, base_url


TALK: list[tuple[Body, str, str]] = [
    ({"messages": [{"role": "user", "content": "a " * 9000}]}, "messages", "at most 4095"),
    (said({"type": "text", "text": "b " * 9000}) | SPOKEN, "messages", "Make it shorter"),
    (said(sound(recording(0.01))), "messages", "at least 400"),
    (said(sound(recording(0.01))) | SPOKEN, "messages", "send more of it"),
    (said(sound("aGVsbG8=")), "messages[0].content[0].input_audio.data", "no recording"),
    (said(sound("%")), "messages[0].content[0].input_audio.data", "base64"),
    (said({"type": "video_url"}), "messages[0].content[0].type", "Supported values"),
    ({"tool_choice": "required"}, "tool_choice", "the tools are: none"),
    (tool({"type": "bogus"}), "tools", "Unsupported type"),
    (tool({"properties": {"a": {"$ref": "#/$defs/b"}}}), "tools", "Cannot find field"),
    (SPOKEN | {"audio": {"voice": "nobody", "format": "wav"}}, "audio.voice", "Known voices"),
    ({"seed": -1}, "seed", "must be from 0"),
    ({"temperature": 3}, "temperature", "less than or equal to 2"),
    ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ({"response_format": {"type": "json_schema"}}, "response_format.type", "'text'"),
]

SEE: list[tuple[Body, str, str]] = [
    (said(seen("http://127.0.0.1/a.png")), "messages[0].content[0].image_url.url", "data: URLs"),
    (said(seen(picture(3, 700))), "messages", "3 by 700 pixels"),
    (said(seen("data:image/png;base64,aGk=")), "messages[0].content[0].image_url.url", "PNG"),
]

READ: list[tuple[Body, str, str]] = [
    ({"voice": "nobody"}, "voice", "Known voices"),
    ({"speed": 2.0}, "speed", "leave speed out"),
    ({"input": " ... "}, "input", "nothing that can be spoken"),
]

CLONE: list[tuple[Body, str, str]] = [
    ({}, "ref_audio", "no voice of its own"),
    ({"ref_audio": "aGVsbG8="}, "ref_audio", "no audio file"),
    ({"ref_audio": recording(0.05)}, "ref_audio", "lasts 0.05 s"),
    ({"ref_audio": "data:audio/wav,x"}, "ref_audio", "data URL"),
    ({"ref_text": "What I said"}, "ref_text", "needs the ref_audio"),
    ({"language": "xx"}, "language", "speaks: "),
]

WRONG: dict[str, list[tuple[str, Body, str, str]]] = {
    "qwen3_tts": [(SPEECH, *wrong) for wrong in READ + CLONE],
    "qwen3_omni": [
        *((CHAT, *wrong) for wrong in TALK + SEE),
        (SPEECH, {"voice": "ethan"}, "model", "reads no texts aloud"),
    ],
    "qwen2_5_omni": [
        *((CHAT, *wrong) for wrong in TALK + SEE),
        *((SPEECH, *wrong) for wrong in READ),
        (SPEECH, {"input": "long words " * 370}, "input", "at most 4095"),
        (SPEECH, {"ref_audio": recording(1.0)}, "ref_audio", "clones none"),
    ],
}


def ask(base_url: str, pipeline: str, path: str, changes: Body) -> httpx.Response:
    body: Body = {"model": pipeline}
    if path == CHAT:
        body |= {"messages": [{"role": "user", "content": "Hello"}]} | SHORT
    else:
        voice = {"qwen3_tts": "reference"}.get(pipeline, "Ethan")
        body |= {"input": "Hello.", "voice": voice, "response_format": "pcm"}
    return httpx.post(f"{base_url}{path}", json=body | changes, timeout=120)


def test_wrong_requests_are_told_what_to_mend(served: tuple[str, str]) -> None:
    pipeline, base_url = served
    for path, changes, param, words in WRONG[pipeline]:
        answer = ask(base_url, pipeline, path, changes)
        assert answer.status_code == 400, (param, words, answer.text[:300])
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert (error["param"], words in error["message"]) == (param, True), error
    good = {
        "qwen3_tts": (SPEECH, {"ref_audio": recording(1.0)}),
        "qwen3_omni": (CHAT, said(seen(picture(60, 40)), sound(recording(0.5)))),
        "qwen2_5_omni": (CHAT, said(seen(picture(60, 40)), sound(recording(0.5)))),
    }
    answer = ask(base_url, pipeline, *good[pipeline])
    assert answer.status_code == 200, answer.text[:300]
