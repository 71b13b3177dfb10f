"""The cache policy for denoising steps: when an evaluation's result may be used again.

Neighbouring evaluations of a denoiser often give nearly the same direction. The policy compares a
cheap signal that the module derives from its input at this time with the signal at the last
evaluation that was computed; while the two are close enough, that one's result stands in (the idea
of Liu et al. 2024, "Timestep Embedding Tells: It's Time to Cache for Video Diffusion Model"). This
is an approximation, and therefore off unless a deployment asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.deploy_config import StepCacheDeployment


@dataclass(frozen=True, slots=True)
class StepCachePolicy:
    """When a result is used again.

    Attributes:
        largest_change: Relative change of the signal below which it is.
        longest_run: How often in a row it may be.
    """

    largest_change: float
    longest_run: int

    @classmethod
    def of(cls, deployment: StepCacheDeployment | None) -> StepCachePolicy | None:
        """The policy that a deployment asks for; None: every evaluation is computed."""
        if deployment is None:
            return None
        return cls(deployment.largest_change, deployment.longest_run)

    def reuses(self, change: float, run: int) -> bool:
        """Whether the last computed result stands in.

        Args:
            change: Relative change of the signal since then; infinite where nothing was computed.
            run: How often it stood in already.
        """
        return run < self.longest_run and change < self.largest_change


@dataclass(slots=True)
class StepCacheCount:
    """How many evaluations were computed and how many were spared.

    Attributes:
        computed: Evaluations that the module ran.
        reused: Evaluations that an older result stood in for.
    """

    computed: int = 0
    reused: int = 0

    @property
    def share(self) -> float:
        """The share of evaluations that were spared, from 0 to 1."""
        return self.reused / max(self.computed + self.reused, 1)
