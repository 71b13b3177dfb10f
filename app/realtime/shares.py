"""Who had which share in the time to an answer's first sound. Pure."""

from __future__ import annotations

from itertools import pairwise

from engine import RequestTimes, StageTimes

EAR = "ear"
ADMISSION = "admission"
DELIVERY = "delivery"


def shares(times: RequestTimes, opened: float, sent: float) -> dict[str, float]:
    """The seconds that each part took until an answer's first sound, one after the other.

    A stage's share ends when the next one had enough of its output to begin; so what a stage waits
    for is the share of the stage that it waits for. The parts add up to the whole.

    Args:
        times: What the engine noted about the request.
        opened: When the turn's end was decided, or the response asked for.
        sent: When the first sound was handed to the client's socket.

    Returns:
        The parts in order: the ear (finding out the words), the engine's waiting line, its stages
        by name, and the way from the engine to the client. Empty where the engine noted too little.
    """
    if times.arrived is None or times.admitted is None or times.first_audio is None:
        return {}
    stages = list(times.stages.items())
    marks = [(EAR, times.arrived), (ADMISSION, times.admitted)]
    for (name, _), (_, after) in pairwise(stages):
        begun = _could_begin(after)
        if begun is None:
            return {}
        marks.append((name, begun))
    if stages:
        marks.append((stages[-1][0], times.first_audio))
    marks.append((DELIVERY, sent))
    found, since = {}, opened
    for name, mark in marks:
        found[name] = max(0.0, mark - since)
        since = max(since, mark)
    return found


def _could_begin(stage: StageTimes) -> float | None:
    """When a stage had input and credit enough for its first step."""
    return None if stage.first_step is None else stage.first_step - stage.queue
