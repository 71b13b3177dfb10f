"""Lets a running server speak, and keeps the sound and what a player of it would have met."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import numpy as np

from app.audio.pcm import FloatSamples
from app.load import Listening, Utterance


@dataclass(frozen=True, slots=True)
class Spoken:
    """The sound of one text, as 16-bit samples at 24 kHz, and how it came."""

    data: bytes
    took: Utterance

    @property
    def samples(self) -> FloatSamples:
        """The sound in numbers from -1 to 1."""
        return np.frombuffer(self.data, "<i2").astype(np.float32) / np.float32(32768)


def connect(url: str, key: str | None = None) -> httpx.Client:
    """A client of a server; waits long for the first audio, since machines may be busy."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, timeout=120)


def served_model(client: httpx.Client) -> str:
    """The model that a server speaks with.

    Raises:
        httpx.HTTPError: The server does not answer, or with an error.
    """
    response = client.get("/v1/models")
    response.raise_for_status()
    model: str = response.json()["data"][0]["id"]
    return model


def speak(client: httpx.Client, model: str, text: str, voice: str) -> Spoken:
    """Streams one text as samples.

    Raises:
        httpx.HTTPError: The server answered with an error, or broke off.
    """
    body = {"model": model, "input": text, "voice": voice, "response_format": "pcm"}
    listening, data = Listening(), bytearray()
    with client.stream("POST", "/v1/audio/speech", json=body) as response:
        response.raise_for_status()
        for piece in response.iter_raw():
            listening.take(piece)
            data += piece
    return Spoken(bytes(data), listening.end())
