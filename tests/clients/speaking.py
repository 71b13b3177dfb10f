"""What the client tests share."""

from __future__ import annotations

from tests.watching import metric

SENTENCE = "The quick brown fox jumps over the lazy dog, twice."


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
