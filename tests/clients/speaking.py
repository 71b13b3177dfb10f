"""What the client tests share."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

SENTENCE = "The quick brown fox jumps over the lazy dog, twice."


def metric(base_url: str, name: str) -> float:
    """The sum of all samples of a metric."""
    text = httpx.get(f"{base_url}/metrics", timeout=20).text
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith((f"{name} ", f"{name}{{"))
    )


def outcome(base_url: str, name: str) -> float:
    """How many requests ended in a way."""
    text = httpx.get(f"{base_url}/metrics", timeout=20).text
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("antiphon_speech_requests_total") and f'outcome="{name}"' in line
    )


def until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


BUSY_GAUGES = (
    "antiphon_speech_active",
    "antiphon_websocket_connections",
    "antiphon_requests_running",
    "antiphon_requests_waiting",
    "antiphon_requests_live",
    "antiphon_edges_open",
    "antiphon_credits_in_use",
)
"""Everything that says that somebody is being served."""


def is_idle(base_url: str) -> bool:
    """Whether nothing of any request is left in the server."""
    return all(metric(base_url, gauge) == 0 for gauge in BUSY_GAUGES)
