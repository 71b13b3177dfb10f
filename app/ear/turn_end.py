"""Tells from the sound of speech whether the speaker has finished."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE
from app.ear.activity import open_onnx

SECONDS = 8
"""How much of the end of a turn is looked at."""

_SAMPLES = SECONDS * SAMPLE_RATE


class TurnEndModel:
    """The loaded model; calls may come from several threads."""

    def __init__(self, folder: Path) -> None:
        """Loads a folder's model."""
        self._session = open_onnx(folder)
        self._features = FeatureExtractor(chunk_length=SECONDS)

    def finished(self, turn: FloatSamples) -> float:
        """The probability that a turn is complete as it stands, from the sound of its end."""
        sound = turn[-_SAMPLES:].astype(np.float32)
        # The end of the turn is the end of the window; what is missing is silence before it.
        sound = np.pad(sound, (_SAMPLES - len(sound), 0))
        sound = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)
        features = self._features(sound, padding=0)[:, : SECONDS * 100]
        feed = {"input_features": features[np.newaxis].astype(np.float32)}
        return float(self._session.run(None, feed)[0][0, 0])
