"""Step 4: fine-tune the decoder to stream, and to take quantised features.

    python -m recipes.lark.code2wav --data build/lark --minutes 50

The student starts from the teacher's weights with most of its look-ahead cut off. The loss compares
what is heard: the deterministic part of the spectrum (pulses and free phase) as complex numbers and
the whole as log power, besides the five branches themselves.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipelines.lark.decoder import Decoder, DecoderConfig
from pipelines.lark.spectrum import BINS, BRANCHES
from recipes.lark.code2wav_data import FrameBatch, FrameCorpus, student_weights
from recipes.lark.course import Course

AVERAGE = 0.995
FLOOR = 1e-3
"""Magnitude below which nothing is heard."""

LOSS_NAMES = ("power", "complex", "harmonic", "noise", "free")


@dataclass(frozen=True)
class Settings:
    """How to train."""

    minutes: float
    rows: int = 2
    length: int = 512
    rate: float = 1e-3
    warm_up: int = 50
    seed: int = 9


def heard(spectra: Tensor, pulses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return real and imaginary parts and the noise power of a decoder's output, [B, T, BINS]."""
    harmonic, angle, noise, free, free_angle = spectra.unflatten(-1, (BRANCHES, BINS)).unbind(-2)
    gain, angle = harmonic.clamp(max=7).exp(), torch.pi * torch.tanh(angle)
    free_gain = free.clamp(max=7).exp()
    cosine, sine = gain * angle.cos(), gain * angle.sin()
    real = cosine * pulses.real - sine * pulses.imag + free_gain * free_angle.cos()
    imaginary = cosine * pulses.imag + sine * pulses.real + free_gain * free_angle.sin()
    return real, imaginary, 2 * (2 * noise.clamp(max=7)).exp()


def losses(output: Tensor, batch: FrameBatch) -> Tensor:
    """Return the parts of the loss in the order of `LOSS_NAMES`."""
    real, imaginary, noise = heard(output, batch.pulses)
    with torch.no_grad():
        aim_real, aim_imaginary, aim_noise = heard(batch.target, batch.pulses)
        aim_power = aim_real**2 + aim_imaginary**2 + aim_noise
    power = real**2 + imaginary**2 + noise
    log_power = ((power + FLOOR**2).log() - (aim_power + FLOOR**2).log()).abs().mean() / 2
    distance = ((real - aim_real) ** 2 + (imaginary - aim_imaginary) ** 2 + 1e-8).sqrt()
    complex_part = (distance / (aim_power.sqrt() + FLOOR)).clamp(max=4).mean()
    ours = output.unflatten(-1, (BRANCHES, BINS)).clamp(min=-8)
    theirs = batch.target.unflatten(-1, (BRANCHES, BINS)).clamp(min=-8)
    apart = (ours - theirs).abs()
    voiced = (batch.pulses.abs().amax(-1) > 1e-3).float()[..., None]
    harmonic = (apart[..., 0, :] * voiced).mean()
    return torch.stack(
        [log_power, complex_part, harmonic, apart[..., 2, :].mean(), apart[..., 3, :].mean()]
    )


WEIGHTS = torch.tensor([1.0, 0.5, 0.25, 0.5, 0.15])


class Trainer:
    """The student and its course."""

    def __init__(self, folder: Path, settings: Settings, config: DecoderConfig) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.corpus = FrameCorpus(folder, self.device)
        self.model = Decoder(config).to(self.device)
        self.model.load_state_dict(student_weights(config))
        self.average = Decoder(config).to(self.device)
        self.average.load_state_dict(self.model.state_dict())
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self.course = Course(
            folder / "code2wav.pt",
            (self.model, self.average),
            optimizer,
            settings.minutes,
            AVERAGE,
            {"right": list(config.right)},
        )
        self.recent = torch.zeros(len(LOSS_NAMES))

    def step(self, batch: FrameBatch) -> float:
        """Does one update and returns the smoothed loss."""
        warm = min(1.0, (self.course.steps + 1) / self.settings.warm_up)
        factor = warm * 0.5 * (1.01 + math.cos(math.pi * self.course.used))
        batch = batch.to(self.device)
        parts = losses(self.model(batch.features), batch)
        self.course.update((parts * WEIGHTS.to(self.device)).sum(), factor)
        seen = parts.detach().cpu()
        self.recent = 0.95 * self.recent + 0.05 * seen if self.recent.any() else seen
        return float((self.recent * WEIGHTS).sum())

    def run(self) -> None:
        """Train until the time is used up."""
        settings, corpus = self.settings, self.corpus
        held_out = list(corpus.batches(2, settings.length, 0, corpus.held_out[:30]))
        stream = corpus.batches(settings.rows, settings.length, settings.seed + self.course.steps)
        self.course.write(self._figures(held_out))
        self.course.run(lambda: self.step(next(stream)), lambda: self._figures(held_out))

    def _figures(self, held_out: Sequence[FrameBatch]) -> dict[str, Any]:
        with torch.no_grad():
            moved = [batch.to(self.device) for batch in held_out]
            found = [losses(self.average(batch.features), batch) for batch in moved]
        held = torch.stack(found).mean(0).tolist() if found else []
        return {
            "training": [round(value, 4) for value in self.recent.tolist()],
            "held_out": dict(zip(LOSS_NAMES, [round(value, 4) for value in held], strict=False)),
        }


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--minutes", type=float, default=50.0)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument(
        "--right",
        type=int,
        nargs=9,
        default=list(DecoderConfig.right),
        metavar="FRAMES",
        help="frames that each layer looks ahead",
    )
    options = parser.parse_args()
    config = DecoderConfig(right=tuple(options.right))
    Trainer(options.data, Settings(options.minutes, rate=options.rate), config).run()


if __name__ == "__main__":
    main()
