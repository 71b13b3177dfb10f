"""The compiler of processors: torch's inductor, in a form that vLLM can keep on disk and load.

vLLM 0.32 keeps what it compiles ahead of time. On processors it hands the graph to plain inductor,
keeps the result, and then fails to load it, since it asks every result to finish its loading and
inductor's cannot: each start compiles anew. A compiler of one's own is configuration; this one is
inductor, and its result can be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._dynamo.aot_compile_types import (
    BundledAOTAutogradSerializableCallable,
    SerializableCallable,
)
from torch._inductor import config as inductor_config
from torch._inductor.compile_fx import compile_fx
from vllm.config import VllmConfig

BACKEND = f"{__name__}.inductor"
"""What the compilation configuration calls this compiler."""

OPTIONS: dict[str, Any] = {
    "enable_auto_functionalized_v2": False,
    "dce": True,
    "size_asserts": False,
    "nan_asserts": False,
    "epilogue_fusion": True,
    "cpp.dynamic_threads": True,
}
"""What vLLM gives inductor on processors."""

BUILD_SETTINGS: dict[str, Any] = {"cpp.vec_isa_ok": True, "cpp_cache_precompile_headers": False}
"""Settings of inductor that spare each start about two seconds of compiler runs.

Inductor would try anew whether code for this processor's vector units can be loaded, and would run
the preprocessor over its headers to find what it had precompiled. The processor itself says which
units it has; that the compiler can serve them shows when the model is compiled.
"""


class CompiledGraph(SerializableCallable):
    """A compiled graph that can be written to disk and read again."""

    def __init__(self, bundle: BundledAOTAutogradSerializableCallable) -> None:
        """Wraps what inductor made."""
        self._bundle = bundle
        self._run = bundle.compiled_fn

    @classmethod
    def serialize_compile_artifacts(cls, fn: CompiledGraph) -> bytes:
        """The graph as bytes."""
        return BundledAOTAutogradSerializableCallable.serialize_compile_artifacts(fn._bundle)

    @classmethod
    def deserialize_compile_artifacts(cls, data: bytes) -> CompiledGraph:
        """The graph that bytes stand for; its machine code is loaded."""
        return cls(BundledAOTAutogradSerializableCallable.deserialize_compile_artifacts(data))

    def finalize_loading(self, vllm_config: VllmConfig) -> None:
        """Asked for by vLLM after loading; inductor's graphs are whole by then."""

    def __call__(self, *arguments: Any) -> Any:
        """Runs the graph."""
        return self._run(*arguments)


def build_settings() -> AbstractContextManager[None]:
    """Inductor's settings while a model is built; compiling and loading must see the same."""
    settings: AbstractContextManager[None] = inductor_config.patch(BUILD_SETTINGS)
    return settings


def inductor(graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> CompiledGraph:
    """Compiles a graph; the signature is that of torch's compilers."""
    compiled = compile_fx(graph, inputs, config_patches=OPTIONS)
    return CompiledGraph(BundledAOTAutogradSerializableCallable(compiled))
