"""The realtime clients of openai-agents and Pipecat, unmodified, against the real engine.

Their packages live in an environment of their own: `make clients` makes it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ears import need_ear
from tests.voices import pcm, silence, synthesized

FOLDER = Path(__file__).parent / "peers"
PYTHON = Path(__file__).resolve().parents[2] / ".venv-clients" / "bin" / "python"

PATIENCE = 600.0


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files with a question and with an interruption."""
    need_ear()
    folder = tmp_path_factory.mktemp("speech")
    question, interruption = folder / "question.pcm", folder / "interruption.pcm"
    asked = synthesized("Tell me something about the sea.")
    question.write_bytes(pcm(silence(0.4)) + pcm(asked))
    interruption.write_bytes(pcm(synthesized("Please stop now, I want to ask something else.")))
    return [str(question), str(interruption)]


@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize(
    ("script", "query"),
    [("agents_conversation.py", "?model=gpt-realtime"), ("pipecat_conversation.py", "")],
)
def test_a_conversation(conversing_server: str, speech: list[str], script: str, query: str) -> None:
    if not PYTHON.exists():
        pytest.skip("the other makers' clients are not installed: make clients")
    url = f"{conversing_server.replace('http', 'ws', 1)}/v1/realtime{query}"
    command = [str(PYTHON), str(FOLDER / script), url, *speech]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    for part in ("text_turn", "spoken_turn", "interruption", "cancel", "tool_call"):
        assert result[part], f"{part}: {result}"
    assert result["errors"] == []
    assert "sea" in result["heard"][0].lower()
    assert result["seconds"] > 1
