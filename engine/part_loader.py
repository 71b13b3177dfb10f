"""A loader for vLLM that reads one model's weights of a checkpoint that holds several.

vLLM's own opens every file of a checkpoint and reads every weight before the model drops it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import safe_open
from torch import nn
from vllm.config import ModelConfig
from vllm.config.load import LoadConfig
from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

from engine.weight_files import weight_files

LOAD_FORMAT = "part"
PREFIXES = "prefixes"
"""In the loader's extra configuration: what the names of the wanted weights begin with."""


@register_model_loader(LOAD_FORMAT)
class PartLoader(DefaultModelLoader):
    """Reads the weights whose names begin with one of some prefixes, from the files with them."""

    def __init__(self, load_config: LoadConfig) -> None:
        """Takes the prefixes out of the extra configuration."""
        extra = dict(load_config.model_loader_extra_config)
        self._prefixes: tuple[str, ...] = tuple(extra.pop(PREFIXES))
        super().__init__(replace(load_config, model_loader_extra_config=extra))

    def get_all_weights(
        self, model_config: ModelConfig, model: nn.Module
    ) -> Generator[tuple[str, torch.Tensor]]:
        """The wanted weights by the checkpoint's names."""
        del model
        for path in weight_files(Path(model_config.model), self._prefixes):
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - it is no mapping
                    if name.startswith(self._prefixes):
                        yield name, file.get_tensor(name)
