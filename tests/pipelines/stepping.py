"""What surrounds a Talker's backbone in a step, on a device that stands for a GPU."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from engine.adapter import FeedRows
from engine.autoregressive import AutoregressiveReplica
from engine.code_choice import CodeChooser, CodeSampling, CodeStream
from engine.conditioned_model import gather_step_inputs
from engine.feed import Feed, GrowingVectors
from pipelines.qwen3_tts.code_predictor import CodePredictor
from tests.pipelines.qwen3_tts.torch_kernels import TorchKernels
from tests.synchronisation import DEVICE, no_synchronisation

SAMPLED = CodeSampling(0.9, top_k=4, top_p=0.9)


class Logits(nn.Module):
    """In the place of vLLM's product with the head, which on processors is another library's."""

    def forward(self, head: nn.Module, states: torch.Tensor) -> torch.Tensor:
        return states.new_zeros(len(states), head.num_embeddings)


def on_the_device(model: Any) -> Any:
    """A Talker without its backbone, of which only the embedding of codes is left."""
    moved = copy.copy(model)
    backbone = nn.Module()
    for name, child in model.model.named_children():
        if name == "embed_tokens":
            backbone.add_module(name, child)
    parts = dict(model.named_children()) | {"model": backbone}
    parts["logits_processor"] = Logits()
    moved._modules = {name: copy.deepcopy(part) for name, part in parts.items()}
    moved._parameters = {
        name: nn.Parameter(values.to(DEVICE), requires_grad=False)
        for name, values in model._parameters.items()
    }
    moved._buffers = {name: values.to(DEVICE) for name, values in model._buffers.items()}
    return moved.to(DEVICE)


def assert_steps_do_not_wait(replica: AutoregressiveReplica, payloads: Sequence[FeedRows]) -> None:
    """Reads a request's rows, embeds them, and completes a step's codes without waiting.

    Torch's operations stand for vLLM's kernels, into which nobody can look.
    """
    model = on_the_device(replica.model)
    vectors = None
    if model.vector_width:
        vectors = GrowingVectors(model.vector_width, torch.float32, DEVICE)
    feed = Feed(model.row_width, model.row_dtype, model.codebooks, vectors)
    hidden = model.embed_input_ids(torch.zeros(1, dtype=torch.int64, device=DEVICE)).shape[1]
    states = torch.zeros(2, hidden, device=DEVICE)
    tokens = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    chooser = CodeChooser(model.codebooks - 1, model.residual_codes, DEVICE)
    with torch.inference_mode(), no_synchronisation():
        for payload in payloads:
            feed.append(payload)
        feed.codes.extend(np.zeros((2, model.codebooks), np.int64))
        prompt = feed.prompt_rows
        read = gather_step_inputs(model, [feed, feed], [0, prompt], [prompt, 2], DEVICE)
        assert model.embed_step(read).shape == (prompt + 2, hidden)
        assert model.compute_logits(states).device == DEVICE
        choice = chooser.choice([CodeStream(SAMPLED, 0, torch.device("cpu")), None])
        for module in model.modules():
            if isinstance(module, CodePredictor):
                module.kernels, module._transformer = TorchKernels(), None
        codes = model.predict_codes(states, tokens, choice).to("cpu", non_blocking=True)
    assert codes.shape == (2, model.codebooks)
