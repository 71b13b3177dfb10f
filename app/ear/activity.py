"""Tells speech from other sounds, 32 ms at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE
from engine import ConfigurationError

_CONTEXT = 64
"""Samples before a frame that the model looks at again."""

MODEL_FILE = "model.onnx"


def open_onnx(folder: Path) -> onnxruntime.InferenceSession:
    """Loads a folder's model, which computes on the calling thread alone.

    Raises:
        ConfigurationError: The folder has no `model.onnx`, and not just one other `.onnx` file.
    """
    files = sorted(folder.rglob("*.onnx"))
    named = [path for path in files if path.name == MODEL_FILE]
    found = named or files
    if len(found) != 1:
        names = ", ".join(str(path.relative_to(folder)) for path in found) or "none"
        raise ConfigurationError(
            f"{folder} must have one {MODEL_FILE}, or one other .onnx file; it has: {names}."
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(found[0]), options, providers=["CPUExecutionProvider"])


class ActivityModel:
    """The loaded model; many streams share it."""

    def __init__(self, folder: Path) -> None:
        """Loads a folder's model."""
        self._session = open_onnx(folder)
        self._rate = np.array(SAMPLE_RATE, dtype=np.int64)

    def open(self) -> ActivityStream:
        """Begins to listen to one stream."""
        return ActivityStream(self)

    def judge(
        self, samples: FloatSamples, state: npt.NDArray[np.float32]
    ) -> tuple[float, npt.NDArray[np.float32]]:
        """The probability of speech in a frame with its context, and what to remember of it."""
        feed = {"input": samples.reshape(1, -1), "state": state, "sr": self._rate}
        probability, after = self._session.run(None, feed)
        return float(probability[0, 0]), after


class ActivityStream:
    """One stream of sound; not for two threads at once."""

    def __init__(self, model: ActivityModel) -> None:
        """Begins with silence behind it."""
        self._model = model
        self.reset()

    def reset(self) -> None:
        """Forgets what was heard."""
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)

    def probability(self, frame: FloatSamples) -> float:
        """How likely it is that somebody speaks in the next FRAME samples."""
        heard = np.concatenate((self._context, frame))
        probability, self._state = self._model.judge(heard, self._state)
        self._context = heard[-_CONTEXT:]
        return probability
