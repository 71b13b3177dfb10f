"""Step 4: fine-tune the decoder to stream, and to take quantised features.

    python -m recipes.lark.code2wav --data build/lark --minutes 50

The student starts from the teacher's weights with most of its look-ahead cut off. The loss compares
what is heard: the deterministic part of the spectrum (pulses and free phase) as complex numbers and
the whole as log power, besides the five branches themselves.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from pipelines.lark.decoder import Decoder, DecoderConfig
from pipelines.lark.spectrum import BINS, BRANCHES
from recipes.lark.code2wav_data import FrameBatch, FrameCorpus, student_weights

CHECKPOINT_SECONDS = 120.0
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
    """Student, optimiser, moving average and their checkpoint."""

    def __init__(self, folder: Path, settings: Settings, config: DecoderConfig) -> None:
        self.settings = settings
        self.path = folder / "code2wav.pt"
        self.log = folder / "code2wav.jsonl"
        torch.manual_seed(settings.seed)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.corpus = FrameCorpus(folder, self.device)
        self.model = Decoder(config).to(self.device)
        self.model.load_state_dict(student_weights(config))
        self.average = Decoder(config).to(self.device)
        self.average.load_state_dict(self.model.state_dict())
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self.steps, self.elapsed = 0, 0.0
        if self.path.exists():
            self._resume()

    def _resume(self) -> None:
        stored = torch.load(self.path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(stored["model"])
        self.average.load_state_dict(stored["average"])
        self.optimizer.load_state_dict(stored["optimizer"])
        self.steps, self.elapsed = stored["steps"], stored["elapsed"]

    def save(self) -> None:
        """Write the checkpoint in one piece."""
        temporary = self.path.with_suffix(".part")
        torch.save(
            {
                "model": self.model.state_dict(),
                "average": self.average.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "right": list(self.model.config.right),
                "steps": self.steps,
                "elapsed": self.elapsed,
            },
            temporary,
        )
        temporary.replace(self.path)

    def step(self, batch: FrameBatch) -> Tensor:
        """Do one update and return the parts of the loss."""
        used = min(self.elapsed / (60 * self.settings.minutes), 1.0)
        factor = (
            min(1.0, (self.steps + 1) / self.settings.warm_up)
            * 0.5
            * (1.01 + math.cos(math.pi * used))
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate * factor
        batch = batch.to(self.device)
        parts = losses(self.model(batch.features), batch)
        (parts * WEIGHTS.to(self.device)).sum().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        share = min(AVERAGE, (self.steps + 1) / (self.steps + 20))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.average.parameters()), list(self.model.parameters()), 1 - share
            )
        self.steps += 1
        return parts.detach().cpu()

    def run(self) -> None:
        """Train until the time is used up."""
        settings, corpus = self.settings, self.corpus
        held_out = list(corpus.batches(2, settings.length, 0, corpus.held_out[:30]))
        stream = corpus.batches(settings.rows, settings.length, settings.seed + self.steps)
        last, saved, recent = time.monotonic(), time.monotonic(), torch.zeros(len(LOSS_NAMES))
        total = settings.minutes * 60
        progress = tqdm(total=total, initial=min(self.elapsed, total), unit="s", mininterval=5)
        self._report(held_out, recent)
        while self.elapsed < 60 * settings.minutes:
            parts = self.step(next(stream))
            recent = parts if not recent.any() else 0.95 * recent + 0.05 * parts
            now = time.monotonic()
            self.elapsed += now - last
            # The last step may end after the time is up; the bar must not pass its end.
            progress.update(max(min(now - last, total - progress.n - 1e-6), 0.0))
            last = now
            if now - saved > CHECKPOINT_SECONDS:
                self._report(held_out, recent)
                saved = last = time.monotonic()
            progress.set_postfix(loss=f"{float((recent * WEIGHTS).sum()):.3f}", steps=self.steps)
        progress.close()
        self._report(held_out, recent)

    def _report(self, held_out: Sequence[FrameBatch], recent: Tensor) -> None:
        self.save()
        with torch.no_grad():
            moved = [batch.to(self.device) for batch in held_out]
            found = [losses(self.average(batch.features), batch) for batch in moved]
        held = torch.stack(found).mean(0).tolist() if found else []
        figures = {
            "minutes": round(self.elapsed / 60, 2),
            "steps": self.steps,
            "training": [round(value, 4) for value in recent.tolist()],
            "held_out": dict(zip(LOSS_NAMES, [round(value, 4) for value in held], strict=False)),
        }
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(figures) + "\n")


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
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    config = DecoderConfig(right=tuple(options.right))
    Trainer(options.data, Settings(options.minutes, rate=options.rate), config).run()


if __name__ == "__main__":
    main()
