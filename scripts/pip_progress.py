"""Runs pip with its progress in plain words and its full output in a log file."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

LINES_SHOWN_ON_FAILURE = 25

SECONDS_BETWEEN_LINES = 5.0
"""Where output is not a terminal, a line of progress is printed this often at most."""


class PipError(Exception):
    """pip failed; the message shows the end of what it printed."""

    def __init__(self, command: list[str], output: str, log: Path) -> None:
        """Keeps the output for callers that know how to go on."""
        end = "\n".join(output.splitlines()[-LINES_SHOWN_ON_FAILURE:])
        super().__init__(f"`pip {' '.join(command)}` failed:\n{end}\n(All of it: {log})")
        self.output = output


def describe(line: str) -> str | None:
    """One line of pip's output as progress; None for lines that tell a person nothing."""
    if match := re.match(r"Collecting (\S+)", line):
        return f"looking at {re.split('[<>=!~;(]', match[1])[0]}"
    if match := re.match(r"\s*(?:Downloading|Using cached) (\S+?)-\d\S* \((.+)\)", line):
        return f"fetching {match[1].rsplit('/', 1)[-1]} ({match[2]})"
    if match := re.match(r"Installing collected packages: (.*)", line):
        return f"installing {match[1].count(',') + 1} packages; this takes a minute"
    return None


class ProgressLine:
    """Shows what happens now: rewritten in place on a terminal, now and then elsewhere."""

    def __init__(self) -> None:
        """Starts with nothing shown."""
        self._terminal = sys.stdout.isatty()
        self._last_shown = 0.0
        self._count = 0

    def show(self, text: str) -> None:
        """Shows a piece of progress."""
        self._count += 1
        if self._terminal:
            print(f"\r\x1b[K  [{self._count}] {text}"[:100], end="", flush=True)
            return
        now = time.monotonic()
        if now - self._last_shown >= SECONDS_BETWEEN_LINES or text.startswith("installing"):
            self._last_shown = now
            print(f"  {text}", flush=True)

    def clear(self) -> None:
        """Leaves a clean line for what follows."""
        if self._terminal:
            print("\r\x1b[K", end="", flush=True)


def run_pip(python: Path, arguments: list[str], log: Path) -> None:
    """Runs pip of the environment `python` belongs to.

    Raises:
        PipError: pip ended with an error.
    """
    command = [str(python), "-m", "pip", *arguments, "--disable-pip-version-check"]
    progress = ProgressLine()
    lines = []
    with (
        log.open("a", encoding="utf-8") as log_file,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        if process.stdout is None:
            raise AssertionError("pip was started with a pipe for its output")
        for line in process.stdout:
            lines.append(line)
            log_file.write(line)
            if text := describe(line):
                progress.show(text)
    progress.clear()
    if process.returncode != 0:
        raise PipError(arguments, "".join(lines), log)
