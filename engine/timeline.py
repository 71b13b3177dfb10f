"""Where a request's time went: written on the engine thread, read by who asked when it is over.

Keeping these costs a few additions a step; nothing here reads a clock. All moments are seconds on
`time.monotonic`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.errors import ErrorCode


@dataclass(slots=True)
class StageTimes:
    """One request's time at one stage. Durations are in seconds.

    From the first input to the end a request computes, is short of input, is held for lack of
    credit, or waits while the host steps others (`waited`).

    Attributes:
        first_input: When the stage was given its first input.
        first_step: When the first step that it took part in began.
        first_output: When the first step that made something for it was done.
        ended: When the stage was done with it, well or not.
        steps: Steps that it took part in.
        compute: Duration of those steps, each of which it shared with the step's whole batch.
        queue: From having input and credit enough for a step to the beginning of the first.
        starved: Without input for a step. For a stage that works in chunks, that is the time
            until a chunk's worth of input has come.
        held: Without credit: what it made was not taken.
        transfer: How long the first chunk was under way, from its sending until it was taken.
        buffered: Sum over all chunks of the time between sending and taking.
        chunks: How many were taken.
    """

    first_input: float | None = None
    first_step: float | None = None
    first_output: float | None = None
    ended: float | None = None
    steps: int = 0
    compute: float = 0.0
    queue: float = 0.0
    starved: float = 0.0
    held: float = 0.0
    transfer: float | None = None
    buffered: float = 0.0
    chunks: int = 0
    _idle_since: float | None = None
    _held_since: float | None = None
    _held_before: float = 0.0

    @property
    def waited(self) -> float:
        """How long it could have taken part in a step, while the host stepped others."""
        if self.first_input is None or self.ended is None:
            return 0.0
        known = self.compute + self.starved + self.held
        return max(0.0, self.ended - self.first_input - known)

    def take(self, sent: float, now: float) -> None:
        """A chunk that was sent at `sent` was taken off the edge into the stage."""
        waited = now - sent
        self.buffered += waited
        self.chunks += 1
        if self.transfer is None:
            self.transfer = waited

    def offer(self, now: float) -> None:
        """The stage was given input."""
        if self.first_input is None:
            self.first_input = now
            if self._idle_since is not None:
                # What passed before is the time of the stages upstream.
                self._fall_idle(now)

    def step(self, began: float, ended: float) -> None:
        """It took part in a step."""
        if self.first_step is None:
            self.first_step = began
            if self.first_input is not None:
                stalled = self.starved + self._held_until(began)
                self.queue = max(0.0, began - self.first_input - stalled)
        self.steps += 1
        self.compute += ended - began

    def idle(self, now: float) -> None:
        """It could not take part in a step from now on."""
        if self._idle_since is None:
            self._fall_idle(now)

    def wake(self, now: float) -> float:
        """It could take part in a step again.

        Returns:
            How long it was short of input since `idle`.
        """
        if self._idle_since is None:
            return 0.0
        since, self._idle_since = self._idle_since, None
        if self.first_input is None:
            return 0.0
        held = self._held_until(now) - self._held_before
        starved = max(0.0, now - since - held)
        self.starved += starved
        return starved

    def hold(self, now: float) -> None:
        """It has no credit from now on."""
        if self._held_since is None:
            self._held_since = now

    def release(self, now: float) -> float:
        """It has credit again.

        Returns:
            How long it had none.
        """
        if self._held_since is None:
            return 0.0
        seconds = now - self._held_since
        self._held_since = None
        self.held += seconds
        return seconds

    def end(self, now: float) -> tuple[float, float]:
        """The stage is done with it; only the first end counts.

        Returns:
            How long it was held and starved when it ended, which `release` and `wake` have not
            told yet.
        """
        if self.ended is not None:
            return 0.0, 0.0
        self.ended = now
        starved = self.wake(now)
        return self.release(now), starved

    def _fall_idle(self, now: float) -> None:
        self._idle_since = now
        self._held_before = self._held_until(now)

    def _held_until(self, now: float) -> float:
        return self.held + (0.0 if self._held_since is None else now - self._held_since)


@dataclass(slots=True)
class RequestTimes:
    """One request's times from its arrival to its end.

    Attributes:
        arrived: When the engine was asked.
        admitted: When its turn came.
        opened: When the engine thread had taken it in.
        stages: Its stages, upstream first.
        first_audio: When its first audio was put where the client reads.
        ended: When the engine was done with it.
        error: Why it did not end well; None while it runs, and when all is well.
        audio_seconds: Duration of the audio that was made.
        underruns: How often a player that begins with the first chunk would have run dry.
        silence: For how long, in all.
    """

    arrived: float | None = None
    admitted: float | None = None
    opened: float | None = None
    stages: dict[str, StageTimes] = field(default_factory=dict)
    first_audio: float | None = None
    ended: float | None = None
    error: ErrorCode | None = None
    audio_seconds: float = 0.0
    underruns: int = 0
    silence: float = 0.0
