from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine import ConfigurationError
from engine.deploy_config import DiffusionDeployment, StageDeployment
from engine.diffusion import DiffusionReplica
from tests.engine.test_diffusion import Denoiser

DEPLOYMENT = StageDeployment(
    device="cuda:0",
    cuda_graphs=[1, 2],
    diffusion=DiffusionDeployment(first_blocks=1, maximum_blocks=3, look_ahead_blocks=1),
)


class CapturedDenoiser(Denoiser):
    captured: Sequence[int] = ()

    def capture(self, block_counts: Sequence[int]) -> None:
        self.captured = block_counts


def test_a_denoiser_is_captured_as_the_deployment_says() -> None:
    module = CapturedDenoiser()
    DiffusionReplica.of(module, DEPLOYMENT)
    assert module.captured == [2, 4, 8]


def test_what_cannot_be_captured_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"cuda_graphs is \[1, 2\], but this stage has no"):
        DiffusionReplica.of(Denoiser(), DEPLOYMENT)
    whole = DEPLOYMENT.diffusion.model_copy(update={"look_ahead_blocks": None})
    with pytest.raises(ConfigurationError, match=r"without diffusion\.look_ahead_blocks"):
        DiffusionReplica.of(CapturedDenoiser(), DEPLOYMENT.model_copy(update={"diffusion": whole}))
