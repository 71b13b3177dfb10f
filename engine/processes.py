"""Ending child processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess


def end_process_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a group of its own, and everything in that group; idempotent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    process.wait()
