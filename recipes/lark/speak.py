"""Speak a text with exported weights, in plain torch and without a server.

python -m recipes.lark.speak "Hello there." hello.wav
"""

from __future__ import annotations

import argparse
import json
import wave
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file

from pipelines.lark.codec import CodecState
from pipelines.lark.decoder import Code2Wav, load_code2wav
from pipelines.lark.spectrum import SAMPLE_RATE
from pipelines.lark.stretch import Shortener, split_speed
from recipes.lark.talker_model import Sampler, Talker, TalkerConfig
from recipes.lark.teacher import FeatureTeacher

WEIGHTS = Path("pipelines/lark/weights")


def load_talker(folder: Path) -> Talker:
    """Load the exported Talker into the reference model."""
    stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    known = {field.name: stored[field.name] for field in fields(TalkerConfig)}
    known["codebook_sizes"] = tuple(known["codebook_sizes"])
    model = Talker(TalkerConfig(**known))
    tensors = load_file(folder / "talker.safetensors")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model.eval().requires_grad_(False)


class Voice:
    """Talker and Code2Wav together, one request at a time."""

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self.talker: Talker = load_talker(folder)
        self.code2wav: Code2Wav = load_code2wav(folder)

    def codes(
        self, utterances: list[list[int]], temperature: float = 0.0, seed: int = 0
    ) -> npt.NDArray[np.int64]:
        """Return the codes [P, 5] of one request's sentences, given as phoneme ids with pads."""
        sampler = Sampler(self.talker, temperature=temperature, seed=seed)
        ids = [phoneme for utterance in utterances for phoneme in utterance]
        codes: npt.NDArray[np.int64] = sampler.generate(ids).numpy()
        return codes

    def samples(
        self, codes: npt.NDArray[np.int64], speed: float = 1.0, seed: int = 0
    ) -> npt.NDArray[np.float32]:
        """Return the sound of codes [P, 5]."""
        own, factor = split_speed(speed)
        made = self.code2wav.codec.features(CodecState(own), codes)
        state = self.code2wav.decoder.new_state(seed)
        (sound,) = self.code2wav.decoder.step([state], [torch.from_numpy(made.features)], [True])
        if factor == 1.0:
            return sound
        return Shortener(factor, SAMPLE_RATE).shorten(sound, final=True)


def write_wave(path: Path, samples: npt.NDArray[np.float32]) -> None:
    """Write mono 16-bit samples."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text")
    parser.add_argument("file", type=Path)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--speed", type=float, default=1.0)
    options = parser.parse_args()
    teacher, voice = FeatureTeacher(), Voice(options.weights)
    utterances = [teacher.ids(phonemes) for phonemes in teacher.phonemes(options.text)]
    write_wave(options.file, voice.samples(voice.codes(utterances), options.speed))


if __name__ == "__main__":
    main()
