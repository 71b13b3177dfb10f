"""What both trainings share: updates by the clock, a moving average, checkpoints and a log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

CHECKPOINT_SECONDS = 120.0


class Course:
    """A model on its way, with its optimiser and the moving average of its weights.

    Attributes:
        device: Where the model is.
        model: The weights that are trained.
        average: Their moving average, which is what a training is for.
        steps: Updates so far.
        elapsed: Seconds of training so far.
    """

    def __init__(
        self,
        path: Path,
        models: tuple[nn.Module, nn.Module],
        optimizer: torch.optim.Optimizer,
        minutes: float,
        decay: float,
        notes: dict[str, Any] | None = None,
    ) -> None:
        """Goes on from the checkpoint, if there is one.

        Args:
            path: The checkpoint; its log lies beside it and ends in `.jsonl`.
            models: Two with the same weights: to train, and to average.
            optimizer: Of the first; its groups' learning rates are the largest ones.
            minutes: How long to train in all.
            decay: Of the moving average, once it has seen many updates.
            notes: What a checkpoint says beside.
        """
        self.path, self.log = path, path.with_suffix(".jsonl")
        self.model, self.average = models
        self.optimizer = optimizer
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.seconds, self.decay, self.notes = 60 * minutes, decay, notes or {}
        self.steps, self.elapsed = 0, 0.0
        if path.exists():
            self._resume()

    def _resume(self) -> None:
        device = next(self.model.parameters()).device
        stored = torch.load(self.path, map_location=device, weights_only=True)
        self.model.load_state_dict(stored["model"])
        self.average.load_state_dict(stored["average"])
        self.optimizer.load_state_dict(stored["optimizer"])
        self.steps, self.elapsed = stored["steps"], stored["elapsed"]

    @property
    def used(self) -> float:
        """The share of the time that is used up, 0 to 1."""
        return min(self.elapsed / self.seconds, 1.0)

    def save(self) -> None:
        """Writes the checkpoint in one piece."""
        temporary = self.path.with_suffix(".part")
        states = {
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "steps": self.steps,
            "elapsed": self.elapsed,
        }
        torch.save({**states, **self.notes}, temporary)
        temporary.replace(self.path)

    def update(self, loss: Tensor, rate_factor: float) -> None:
        """Does one update along the gradient of a loss."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * rate_factor
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        share = min(self.decay, (self.steps + 1) / (self.steps + 20))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.average.parameters()), list(self.model.parameters()), 1 - share
            )
        self.steps += 1

    def run(self, step: Callable[[], float], report: Callable[[], dict[str, Any]]) -> None:
        """Trains until the time is used up; its figures go to the log.

        Args:
            step: Does one update and gives its loss, smoothed for the eye.
            report: Figures on held-out data; its time does not count.
        """
        progress = tqdm(
            total=self.seconds,
            initial=min(self.elapsed, self.seconds),
            unit="s",
            mininterval=5,
        )
        last = saved = time.monotonic()
        while self.elapsed < self.seconds:
            loss = step()
            now = time.monotonic()
            self.elapsed += now - last
            # The last step may end after the time is up; the bar must not pass its end.
            progress.update(max(min(now - last, self.seconds - progress.n - 1e-6), 0.0))
            last = now
            if now - saved > CHECKPOINT_SECONDS:
                self.write(report())
                saved = last = time.monotonic()
            progress.set_postfix(loss=f"{loss:.3f}", steps=self.steps)
        progress.close()
        self.write(report())

    def write(self, figures: dict[str, Any]) -> None:
        """Saves, and adds a line to the log."""
        self.save()
        line = {"minutes": round(self.elapsed / 60, 2), "steps": self.steps, **figures}
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
