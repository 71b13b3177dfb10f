"""From judgements about single frames to turns. Pure: sound positions in, findings out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from app.ear import FRAME, SAMPLE_RATE

MILLISECOND = SAMPLE_RATE // 1000

_HYSTERESIS = 0.15
"""How far below its threshold the probability must fall before speech counts as over."""

_LONGEST_GAP = 160 * MILLISECOND
"""A silence inside of speech that has not become a turn yet; longer ones begin it anew."""


@dataclass(frozen=True, slots=True)
class TurnRules:
    """How turns are found; lengths in samples.

    Attributes:
        threshold: Probability from which a frame is speech.
        padding: How much before the first speech belongs to the turn.
        silence: The silence that ends a turn.
        pause: The silence after which the words so far are worth a look.
        semantic: Whether a pause may end the turn, if what was said sounds finished.
        confidence: How sure of that one must be.
        shortest: The speech that makes a turn.
        guarded_shortest: The same while an answer is being heard, so that "mm-hm" is none.
        guarded_threshold: The threshold while an answer is being heard, which may come back as an
            echo.
    """

    threshold: float = 0.5
    padding: int = 300 * MILLISECOND
    silence: int = 500 * MILLISECOND
    pause: int = 200 * MILLISECOND
    semantic: bool = False
    confidence: float = 0.5
    shortest: int = 64 * MILLISECOND
    guarded_shortest: int = 400 * MILLISECOND
    guarded_threshold: float = 0.7


class Finding(Enum):
    """What was found."""

    BEGUN = auto()
    """A turn began; the position is its first sample, with the padding."""
    PAUSED = auto()
    """A silence that may be the turn's end."""
    RESUMED = auto()
    """It was not."""
    ENDED = auto()
    """The turn ended; the position is behind its last sample, with the silence."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding and where in the sound."""

    finding: Finding
    position: int


class TurnDetector:
    """Finds turns in one stream.

    Attributes:
        in_turn: Whether a turn has begun and not ended.
    """

    def __init__(self, rules: TurnRules) -> None:
        """Begins in silence."""
        self.rules = rules
        self.in_turn = False
        self._speaking = False
        self._onset: int | None = None
        self._speech = 0
        self._last_speech = 0
        self._paused = False

    @property
    def last_speech(self) -> int:
        """Behind the last sample that was speech."""
        return self._last_speech

    @property
    def in_pause(self) -> bool:
        """Whether the turn has paused and may be over."""
        return self.in_turn and self._paused

    def frame(self, end: int, probability: float, *, guarded: bool) -> list[Found]:
        """Takes in the judgement about the frame before a position.

        Args:
            end: Behind the frame's last sample.
            probability: That it is speech.
            guarded: Whether an answer is being heard.
        """
        rules = self.rules
        threshold = max(rules.threshold, rules.guarded_threshold) if guarded else rules.threshold
        if probability >= threshold:
            self._speaking = True
        elif probability < max(threshold - _HYSTERESIS, 0.01):
            self._speaking = False
        if self._speaking:
            return self._speech_frame(end, guarded)
        return self._silent(end, end - self._last_speech)

    def absent(self, position: int, samples: int) -> list[Found]:
        """No sound comes behind a position; so much of the time since then counts as silence."""
        return self._silent(position, position + samples - self._last_speech)

    @property
    def next_silence(self) -> int:
        """After which silence something will be found next in the turn, in samples."""
        rules = self.rules
        return rules.silence if self._paused else min(rules.pause, rules.silence)

    def finish(self, position: int) -> list[Found]:
        """The pause that is going on ends the turn, at a position."""
        if not self.in_pause:
            return []
        return self._end(position)

    def _speech_frame(self, end: int, guarded: bool) -> list[Found]:
        self._last_speech = end
        if self.in_turn:
            resumed, self._paused = self._paused, False
            return [Found(Finding.RESUMED, end)] if resumed else []
        if self._onset is None:
            self._onset, self._speech = end - FRAME, 0
        self._speech += FRAME
        shortest = self.rules.guarded_shortest if guarded else self.rules.shortest
        if self._speech < shortest:
            return []
        start = max(0, self._onset - self.rules.padding)
        self.in_turn, self._paused = True, False
        return [Found(Finding.BEGUN, start)]

    def _silent(self, position: int, silence: int) -> list[Found]:
        if not self.in_turn:
            if silence >= _LONGEST_GAP:
                self._onset = None
            return []
        if silence >= self.rules.silence:
            return self._end(position)
        if not self._paused and silence >= self.next_silence:
            self._paused = True
            return [Found(Finding.PAUSED, position)]
        return []

    def _end(self, position: int) -> list[Found]:
        self.in_turn = self._paused = self._speaking = False
        self._onset = None
        return [Found(Finding.ENDED, position)]
