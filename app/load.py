"""Measures a running server as its clients see it: first audio, underruns, real-time factor."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass

import httpx

SAMPLE_RATE = 24_000
BYTES_PER_SECOND = 2 * SAMPLE_RATE
PLAYER_START_SECONDS = 0.1
"""A simulated player begins when it has this much audio."""

SENTENCES = (
    "The morning train was late again, so we walked along the river instead.",
    "Could you tell me when the next bus to the old harbour leaves, please?",
    "She wrote three letters that week, and none of them was ever answered.",
    "A gentle wind moved through the garden and carried the smell of rain.",
    "We expect about twelve visitors on Friday, most of them from abroad.",
    "He opened the heavy door, looked around, and quietly closed it again.",
)
"""Twelve or thirteen words each."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one request took, all in seconds.

    Attributes:
        first_audio: From sending the request to the first byte of sound.
        total: From sending the request to the last byte.
        audio: Length of the sound.
        underruns: How often a player that began with 100 ms of sound ran dry.
        silence: How long it was dry, in all.
    """

    first_audio: float
    total: float
    audio: float
    underruns: int
    silence: float


@dataclass(slots=True)
class Player:
    """A player that starts with PLAYER_START_SECONDS of audio and then plays in real time."""

    received: float = 0.0
    started: float | None = None
    underruns: int = 0
    silence: float = 0.0

    def take(self, seconds: float, now: float) -> None:
        """Takes audio that arrived at `now`, in seconds of a monotonic clock."""
        if self.started is not None:
            dry = now - (self.started + self.received + self.silence)
            if dry > 0:
                self.underruns += 1
                self.silence += dry
        self.received += seconds
        if self.started is None and self.received >= PLAYER_START_SECONDS:
            self.started = now


class Listening:
    """One request, from its sending to the last of its sound."""

    def __init__(self) -> None:
        """The request is sent now."""
        self._began = time.perf_counter()
        self._first: float | None = None
        self._player = Player()

    def take(self, data: bytes) -> None:
        """Plays 16-bit samples at 24 kHz that came now."""
        now = time.perf_counter()
        self._first = now if self._first is None else self._first
        self._player.take(len(data) / BYTES_PER_SECOND, now)

    def end(self) -> Utterance:
        """What it took until now."""
        ended = time.perf_counter()
        return Utterance(
            first_audio=(self._first or ended) - self._began,
            total=ended - self._began,
            audio=self._player.received,
            underruns=self._player.underruns,
            silence=self._player.silence,
        )


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which a share of all values is; 0 where there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


async def speak(client: httpx.AsyncClient, text: str, voice: str) -> Utterance:
    """Sends one request and plays what comes.

    Raises:
        httpx.HTTPStatusError: The server answered with an error.
    """
    listening = Listening()
    body = {"model": "tts-1", "input": text, "voice": voice, "response_format": "pcm"}
    async with client.stream("POST", "/v1/audio/speech", json=body) as response:
        response.raise_for_status()
        async for piece in response.aiter_raw():
            listening.take(piece)
    return listening.end()


async def load(url: str, clients: int, rounds: int, voice: str, key: str | None) -> list[Utterance]:
    """Lets `clients` clients speak at once, each `rounds` sentences one after another."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, limits=limits, timeout=120
    ) as client:

        async def one(index: int) -> list[Utterance]:
            return [
                await speak(client, SENTENCES[(index + turn) % len(SENTENCES)], voice)
                for turn in range(rounds)
            ]

        results = await asyncio.gather(*[one(index) for index in range(clients)])
    return [utterance for result in results for utterance in result]


@dataclass(frozen=True, slots=True)
class Summary:
    """A load in figures; times in seconds.

    Attributes:
        clients: Clients at once.
        first_audio_median: Median time to first audio.
        first_audio_p95: 95th percentile of it.
        underruns: In all utterances together.
        silence: In all utterances together.
        real_time_factor: Median of an utterance's time divided by its length.
        audio_per_second: Audio made in each second, all clients together.
    """

    clients: int
    first_audio_median: float
    first_audio_p95: float
    underruns: int
    silence: float
    real_time_factor: float
    audio_per_second: float


def summarise(clients: int, utterances: list[Utterance], elapsed: float) -> Summary:
    """Turns a load's utterances into figures; `elapsed` is in seconds."""
    firsts = [utterance.first_audio for utterance in utterances]
    return Summary(
        clients=clients,
        first_audio_median=statistics.median(firsts),
        first_audio_p95=percentile(firsts, 0.95),
        underruns=sum(utterance.underruns for utterance in utterances),
        silence=sum(utterance.silence for utterance in utterances),
        real_time_factor=statistics.median(u.total / u.audio for u in utterances if u.audio),
        audio_per_second=sum(utterance.audio for utterance in utterances) / elapsed,
    )
