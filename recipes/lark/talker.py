"""Step 3: train the Talker on the corpus of codes.

    python -m recipes.lark.talker --data build/lark --minutes 50

The learning rate follows the share of `--minutes` that is used up, so the training ends on time
on any machine. A checkpoint is written every few minutes; the command goes on from it.
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
from torch.nn import functional

from recipes.lark.course import Course
from recipes.lark.talker_data import Batch, CodeCorpus, corrupted
from recipes.lark.talker_model import Talker, TalkerConfig, window_mask

AVERAGE = 0.997
CORRUPTION = 0.1


@dataclass(frozen=True)
class Settings:
    """How to train."""

    minutes: float
    rows: int = 4
    length: int = 256
    rate: float = 2e-3
    warm_up: int = 60
    seed: int = 7
    half: bool = False


def losses(model: Talker, batch: Batch, previous: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return cross-entropy in nats and accuracy of every codebook, [codebooks] each."""
    voice = torch.zeros(len(batch.codes), dtype=torch.long, device=batch.codes.device)
    logits = model(batch.phonemes, voice, previous, batch.codes, mask)
    entropies, accuracies = [], []
    for index, scores in enumerate(logits):
        target = batch.codes[..., index].reshape(-1)
        flat = scores.reshape(len(target), -1).float()
        entropies.append(functional.cross_entropy(flat, target))
        accuracies.append((flat.detach().argmax(1) == target).float().mean())
    return torch.stack(entropies), torch.stack(accuracies)


@torch.no_grad()
def evaluate(model: Talker, batches: Sequence[Batch], mask: Tensor) -> dict[str, Any]:
    """Return held-out losses and accuracies."""
    found = [losses(model, batch, batch.previous, mask) for batch in batches]
    entropy = torch.stack([entropies for entropies, _ in found]).mean(0)
    accuracy = torch.stack([accuracies for _, accuracies in found]).mean(0)
    return {
        "total": round(float(entropy.sum()), 3),
        "nats": [round(value, 3) for value in entropy.tolist()],
        "accuracy": [round(value, 3) for value in accuracy.tolist()],
    }


class Trainer:
    """The Talker and its course."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings = settings
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(settings.seed)
        config = TalkerConfig()
        self.corpus = CodeCorpus(folder / "codes.npz", config)
        self.model = Talker(config).to(self.device)
        _initialise(self.model)
        self.average = Talker(config).to(self.device)
        self.average.load_state_dict(self.model.state_dict())
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=settings.rate, betas=(0.9, 0.95), weight_decay=0.05
        )
        self.generator = torch.Generator().manual_seed(settings.seed)
        models = (self.model, self.average)
        path = folder / "talker.pt"
        self.course = Course(path, models, optimizer, settings.minutes, AVERAGE)
        self.recent = float("nan")

    def rate_factor(self) -> float:
        """Return warm-up, then a constant, then a linear descent over the last 60 %."""
        return min(1.0, (self.course.steps + 1) / self.settings.warm_up) * min(
            1.0, (1.0 - self.course.used) / 0.6 + 0.01
        )

    def step(self, batch: Batch, mask: Tensor) -> float:
        """Do one update and return the smoothed loss."""
        config = self.model.config
        previous = corrupted(batch.previous, config, self.generator, CORRUPTION)
        moved = Batch(*(part.to(self.device) for part in (batch.phonemes, previous, batch.codes)))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.half):
            entropies, _ = losses(self.model, moved, moved.previous, mask)
        loss = entropies.sum()
        self.course.update(loss, self.rate_factor())
        seen = float(loss.detach())
        self.recent = seen if math.isnan(self.recent) else 0.98 * self.recent + 0.02 * seen
        return self.recent

    def run(self) -> None:
        """Train until the time is used up."""
        settings = self.settings
        mask = window_mask(settings.length, self.model.config.sliding_window).to(self.device)
        held_out = list(self.corpus.batches(4, settings.length, 0, self.corpus.held_out))
        seed = settings.seed + self.course.steps
        stream = self.corpus.batches(settings.rows, settings.length, seed)
        self.course.run(
            lambda: self.step(next(stream), mask), lambda: self._figures(held_out, mask)
        )

    def _figures(self, held_out: Sequence[Batch], mask: Tensor) -> dict[str, Any]:
        return {
            "phonemes": self.course.steps * self.settings.rows * self.settings.length,
            "training": round(self.recent, 3),
            "held_out": evaluate(self.average, held_out, mask) if held_out else {},
        }


def _initialise(model: Talker) -> None:
    """Small normal embeddings, so that a sum of ten of them has a size near one."""
    for name, parameter in model.named_parameters():
        if "embedding" in name:
            torch.nn.init.normal_(parameter, std=0.3)
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            torch.nn.init.normal_(parameter, std=0.01)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--minutes", type=float, default=50.0)
    parser.add_argument("--rows", type=int, default=4, help="rows of 256 phonemes in a batch")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--half", action="store_true", help="bfloat16 arithmetic")
    options = parser.parse_args()
    settings = Settings(
        options.minutes,
        options.rows,
        rate=options.rate,
        half=options.half,
    )
    Trainer(options.data, settings).run()


if __name__ == "__main__":
    main()
