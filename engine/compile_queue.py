"""Runs compile jobs one after another, in a process of its own that imports nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

LOWEST_PRIORITY = 19


def main(commands: str) -> int:
    """Runs each command of a JSON list; the jobs inherit the low priority.

    Returns:
        The highest exit status.
    """
    os.nice(LOWEST_PRIORITY)
    return max(subprocess.call(command) for command in json.loads(commands))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
