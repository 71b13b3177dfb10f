"""What a listener hears: speech to text, with more patience than the server's own ear has."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import soxr  # type: ignore[import-untyped]
from faster_whisper import WhisperModel

from app.audio.pcm import FloatSamples
from engine.catalogue import Catalogue

MODEL = "whisper-base"
"""The listener's model in the catalogue."""

RATE = 16_000

_QUIET = np.zeros(RATE // 4, np.float32)
"""Put before and behind a sound, since the model misses words that begin or end with it."""


class Transcriber:
    """A loaded Whisper model with 8-bit weights."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Loads the model of a folder; 0 threads uses every processor core, up to four."""
        self._model = WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads or min(os.cpu_count() or 1, 4),
            local_files_only=True,
        )

    @classmethod
    def installed(cls, cache_folder: Path, threads: int = 0) -> Transcriber:
        """The catalogue's model.

        Args:
            cache_folder: Where fetched models lie.
            threads: As above.

        Raises:
            ModelUnavailableError: It has not been fetched, or is damaged; the message says what to
                do.
        """
        return cls(Catalogue.installed(cache_folder).resolve(MODEL), threads)

    def __call__(self, samples: FloatSamples, rate: int) -> str:
        """What is said in English in a sound of any length."""
        sound = np.asarray(soxr.resample(samples, rate, RATE), np.float32)
        segments, _ = self._model.transcribe(
            np.concatenate([_QUIET, sound, _QUIET]),
            language="en",
            beam_size=5,
            condition_on_previous_text=False,
        )
        return " ".join(segment.text.strip() for segment in segments)
