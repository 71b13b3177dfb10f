"""Runs the tests of the demo's logic that needs no browser, with Node's own test runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NODE = shutil.which("node")
FOLDER = Path(__file__).parent


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed.")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.test.mjs")), ids=lambda file: file.name)
def test_with_node(file: Path) -> None:
    assert NODE is not None
    result = subprocess.run(
        [NODE, "--test", str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
