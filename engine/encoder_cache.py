"""Encodes an item of a coming prompt before there is a request, into vLLM's own encoder cache.

The cache is the one that requests use: its size is bounded, what no request refers to is evicted
by age, and a prompt whose items lie in it finds them there, by their identifiers.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm import SamplingParams
from vllm.multimodal.inputs import MultiModalFeatureSpec
from vllm.multimodal.utils import group_and_batch_mm_kwargs
from vllm.v1.engine.core import EngineCore
from vllm.v1.request import Request
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from engine.core import scheduler_of
from engine.multimodal import MediaItem, feature_spec

_NOBODY = "encoded ahead"
"""The request in whose name an item is looked up; it holds nothing."""


def encode_ahead(core: EngineCore, item: MediaItem) -> bool:
    """Encodes an item, unless that has been done or live requests need all of the cache.

    Returns:
        Whether the item was encoded now.
    """
    spec = feature_spec(item)
    request = Request(
        request_id=_NOBODY,
        prompt_token_ids=[0] * item.length,
        sampling_params=SamplingParams(max_tokens=1),
        pooling_params=None,
        mm_features=[spec],
    )
    cache = scheduler_of(core).encoder_cache_manager
    # Looking it up and letting go of it makes a known item the youngest.
    known = cache.check_and_update_cache(request, 0)
    if not known:
        if not cache.can_allocate(request, 0, item.length, 0):
            return False
        core.model_executor.collective_rpc(_encode, args=(spec,))
        cache.allocate(request, 0)
    cache.free(request)
    return not known


def encoded_items(core: EngineCore) -> int:
    """How many items lie in the cache that no request refers to."""
    return len(scheduler_of(core).encoder_cache_manager.freeable)


@torch.inference_mode()
def _encode(worker: Any, spec: MultiModalFeatureSpec) -> None:
    """On the worker: puts an item's embeddings where the runner looks for them."""
    runner: GPUModelRunner = worker.model_runner
    if spec.data is None:
        raise ValueError("The item came without its data.")
    model: Any = runner.get_model()
    batches = group_and_batch_mm_kwargs([(spec.modality, spec.data)], device=runner.device)
    for _, _, inputs in batches:
        (embeddings,) = model.embed_multimodal(**inputs)
        runner.encoder_cache[spec.identifier] = embeddings
