"""The flow of Token2Wav from noise to a mel spectrogram, one evaluation at a time.

Flow matching (Lipman et al. 2023) learns the velocity that carries noise to data; the reference
implementation (transformers' `qwen2_5_omni`) follows it with the four-stage Runge-Kutta rule of
Kutta's 3/8 scheme over time points that are swayed towards the noise (F5-TTS, Chen et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

STAGES = 4
"""Evaluations in one step of the solver."""

THIRD = 1 / 3


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """How the flow is followed; the defaults are the reference's.

    Attributes:
        time_points: Points from 0 to 1 between which the solver steps.
        guidance: Weight of the difference to the unconditional velocity.
        sway: How much denser the points lie near the noise; negative is denser.
    """

    time_points: int = 10
    guidance: float = 0.5
    sway: float = -1.0

    @property
    def evaluations(self) -> int:
        """Evaluations of the network from noise to result."""
        return STAGES * (self.time_points - 1)

    def points(self) -> torch.Tensor:
        """The time points, float32, shape [time points]."""
        points = torch.linspace(0, 1, self.time_points)
        return points + self.sway * (torch.cos(torch.pi / 2 * points) - 1 + points)

    def times(self) -> torch.Tensor:
        """The time of each evaluation, float32, shape [evaluations]."""
        points = self.points()
        steps = points[1:] - points[:-1]
        begins = points[:-1]
        stages = (begins, begins + steps * THIRD, begins + steps * (2 / 3), points[1:])
        return torch.stack(stages, dim=1).reshape(-1)


@dataclass(slots=True)
class FlowPath:
    """One segment's place on its way, advanced velocity by velocity.

    Attributes:
        steps: Lengths of the solver's steps, shape [time points - 1].
        value: The state at the last time point, shape [frames, mel].
        slopes: Velocities of the step that is under way.
    """

    steps: torch.Tensor
    value: torch.Tensor
    slopes: list[torch.Tensor] = field(default_factory=list)
    taken: int = 0

    def point(self) -> torch.Tensor:
        """Where the next velocity is wanted, shape [frames, mel]."""
        if not self.slopes:
            return self.value
        step = self.steps[self.taken]
        if len(self.slopes) == 1:
            return self.value + step * self.slopes[0] * THIRD
        if len(self.slopes) == 2:
            return self.value + step * (self.slopes[1] - self.slopes[0] * THIRD)
        return self.value + step * (self.slopes[0] - self.slopes[1] + self.slopes[2])

    def advance(self, velocity: torch.Tensor) -> None:
        """Takes the velocity at `point`, shape [frames, mel]."""
        self.slopes.append(velocity)
        if len(self.slopes) < STAGES:
            return
        first, second, third, fourth = self.slopes
        mean = first + 3 * (second + third) + fourth
        self.value = self.value + mean * self.steps[self.taken] / 8
        self.taken += 1
        self.slopes = []


def receptive_blocks(look_backward: int, look_ahead: int, evaluations: int) -> tuple[int, int]:
    """Blocks before and behind that the result of a block depends on.

    Each evaluation widens it by what the layers look back and ahead.

    Args:
        look_backward: Layers that see the block before theirs.
        look_ahead: Layers that see the block behind theirs.
        evaluations: Evaluations from noise to result.
    """
    return look_backward * evaluations, look_ahead * evaluations
