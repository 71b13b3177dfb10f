"""What payloads cost on edges, in the units of the edges' capacities."""

from __future__ import annotations

from engine import AudioPayload
from engine.chunk import TextPayload


def characters(payload: object) -> int:
    """The cost of text on an edge; what else travels there costs one."""
    return len(payload.text) if isinstance(payload, TextPayload) else 1


def one(payload: object) -> int:
    """The cost of a conversation, or of a step's output, on an edge."""
    del payload
    return 1


def samples(payload: AudioPayload) -> int:
    """The cost of audio on an edge."""
    return len(payload.samples)
