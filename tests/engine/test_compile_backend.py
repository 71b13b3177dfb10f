"""What is compiled for processors, from the compiler to the disk and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from vllm.config import VllmConfig

from engine.compile_backend import CompiledGraph, build_settings, inductor
from engine.compiled import can_compile


class Doubler(torch.nn.Module):
    """A module to be compiled."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Twice the sine, shape kept."""
        return 2 * values.sin()


@pytest.mark.skipif(not can_compile(), reason="There is no C++ compiler.")
def test_what_was_compiled_is_loaded_and_finished_as_vllm_asks(tmp_path: Path) -> None:
    values = torch.randn(8)
    file = tmp_path / "model"
    module = Doubler()
    with build_settings(), torch._dynamo.config.patch(enable_aot_compile=True):
        options = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
        forward = torch.compile(module.forward, fullgraph=True, backend=inductor, options=options)
        forward.aot_compile(((values,), {})).save_compiled_function(str(file))
        with file.open("rb") as stored:
            loaded = torch.compiler.load_compiled_function(
                stored, f_globals=module.forward.__globals__
            )
    graph = loaded._artifacts.compiled_fn
    assert isinstance(graph, CompiledGraph)
    graph.finalize_loading(VllmConfig())
    loaded.disable_guard_check()
    assert torch.allclose(loaded(module, values), 2 * values.sin())
