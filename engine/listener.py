"""A simulated player: how far a listener is from an underrun (pure logic, times given)."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_AUDIO_SLACK = 0.25
"""The slack of a request that begins. Who has heard nothing yet waits more easily than who falls
silent, so it is about the time of a step that reads a prompt, and never below 0."""


@dataclass(slots=True)
class Listener:
    """Plays what was delivered, in real time, from the first chunk on.

    Attributes:
        started: When the request was submitted, in seconds of a monotonic clock.
        first_audio: When the first audio was delivered, or None.
        delivered: Seconds of audio that were delivered.
        underruns: How often the player ran dry.
        silence: Seconds it was dry, in all.
    """

    started: float
    first_audio: float | None = None
    delivered: float = 0.0
    underruns: int = 0
    silence: float = 0.0

    def slack(self, now: float) -> float:
        """Seconds until the player runs dry; before any audio, the less the longer it waits."""
        if self.first_audio is None:
            return FIRST_AUDIO_SLACK / (1.0 + max(0.0, now - self.started))
        return self._end() - now

    def runs_low_at(self, margin: float) -> float | None:
        """When the slack of a player that has begun falls to `margin` seconds."""
        return None if self.first_audio is None else self._end() - margin

    def deliver(self, seconds: float, now: float) -> None:
        """Takes delivered audio in; a late delivery counts as one underrun."""
        if seconds <= 0.0:
            return
        if self.first_audio is None:
            self.first_audio = now
        late = now - self._end()
        if late > 0 and self.delivered > 0:
            self.underruns += 1
            self.silence += late
        self.delivered += seconds

    def _end(self) -> float:
        return (self.first_audio or 0.0) + self.delivered + self.silence
