"""From a session's wishes and an operator's settings to what the detector goes by."""

from __future__ import annotations

from dataclasses import dataclass

from app.ear.detector import MILLISECOND, TurnRules
from app.ear.findings import HearingRules

_LONGEST_WAIT_MS = {"low": 8000, "medium": 4000, "auto": 4000, "high": 2000}
"""After this silence a turn is over, however unfinished it sounded."""

_CONFIDENCE = {"low": 0.7, "medium": 0.5, "auto": 0.5, "high": 0.35}
"""How sure the model must be that a turn is complete."""


@dataclass(frozen=True, slots=True)
class EarSensitivity:
    """What the operator set.

    Attributes:
        speech_ms: The speech that makes a turn.
        interruption_ms: The same while an answer is being heard.
        interruption_threshold: The least threshold while an answer is being heard.
        pause_ms: The silence after which the words so far are worth a look.
    """

    speech_ms: int = 64
    interruption_ms: int = 400
    interruption_threshold: float = 0.7
    pause_ms: int = 200


def turn_rules(rules: HearingRules, sensitivity: EarSensitivity) -> TurnRules:
    """What the detector goes by."""
    semantic = rules.kind == "semantic"
    silence = _LONGEST_WAIT_MS[rules.eagerness] if semantic else rules.silence_duration_ms
    return TurnRules(
        threshold=rules.threshold,
        padding=rules.prefix_padding_ms * MILLISECOND,
        silence=silence * MILLISECOND,
        pause=sensitivity.pause_ms * MILLISECOND,
        semantic=semantic,
        confidence=_CONFIDENCE[rules.eagerness],
        shortest=sensitivity.speech_ms * MILLISECOND,
        guarded_shortest=sensitivity.interruption_ms * MILLISECOND,
        guarded_threshold=sensitivity.interruption_threshold,
    )
