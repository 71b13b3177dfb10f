"""The teacher: the voice of `hibari-tts` (Apache-2.0), cut where its decoder begins."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 24_000
LONGEST = 400
"""Most phonemes of one utterance; longer sentences are left out of the corpus."""

_INNER = {
    "durations": "/Cast_32_output_0",
    "h": "/Transpose_22_output_0",
    "f0": "f0",
    "energy": "/Mul_62_output_0",
}


@dataclass(frozen=True)
class Utterance:
    """What the teacher says about one sentence before it decodes.

    Attributes:
        ids: phoneme ids with the pad 0 at both ends, [L].
        durations: in units of 25 ms (two frames), [L].
        h: phoneme encodings, [L, 128].
        f0: in hertz, 0 where unvoiced, at 80 Hz, [2 * sum(durations)].
        energy: the teacher's raw energy at 80 Hz, [2 * sum(durations)].
    """

    ids: npt.NDArray[np.int16]
    durations: npt.NDArray[np.int16]
    h: npt.NDArray[np.float16]
    f0: npt.NDArray[np.float16]
    energy: npt.NDArray[np.float16]


def model_path() -> str:
    """Return the teacher's ONNX file inside its package."""
    return str(resources.files("hibari").joinpath("assets", "hibari.onnx"))


class FeatureTeacher:
    """Text to phonemes to features, without decoding: 150 times real time a thread."""

    def __init__(self) -> None:
        import onnx
        import onnxruntime
        from hibari import Hibari

        model = onnx.load(model_path())
        del model.graph.output[:]
        for name in _INNER.values():
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._speech: Any = Hibari(threads=1)

    def phonemes(self, text: str) -> list[str]:
        """Return one phoneme string for each sentence of a text."""
        return list(self._speech.phonemize(text))

    def ids(self, phonemes: str) -> list[int]:
        """Return the phoneme ids of one sentence with the pads at both ends."""
        return list(self._speech.ids(phonemes))

    def features(self, ids: list[int]) -> Utterance:
        """Return the features of one utterance."""
        feed = {"ids": np.asarray([ids], np.int64), "speed": np.ones(1, np.float32)}
        durations, h, f0, energy = self._session.run(list(_INNER.values()), feed)
        return Utterance(
            np.asarray(ids, np.int16),
            durations.reshape(-1).astype(np.int16),
            h[0].T.astype(np.float16),
            f0.reshape(-1).astype(np.float16),
            energy.reshape(-1).astype(np.float16),
        )

    def speak(self, ids: list[int], seed: int = 0) -> npt.NDArray[np.float32]:
        """Return the teacher's own samples for one utterance."""
        samples: npt.NDArray[np.float32] = self._speech.from_ids(
            ids, rng=np.random.default_rng(seed)
        )
        return samples
