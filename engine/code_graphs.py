"""A model's code predictor as CUDA graphs: it is many small kernels, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.nn import functional

from engine.code_choice import CodeChoice, CodeFilters, CodeSampling
from engine.conditioned_model import ConditionedModel
from engine.cuda_graphs import GraphedFunction, Recorder, Tensors

BATCH_SIZES_KEY = "antiphon_code_graphs"
"""Where vLLM's `additional_config` names the batch sizes to the model runner."""


class CodeGraphs:
    """Completes codes as the model does, but by replaying graphs at the captured batch sizes.

    There is one graph a batch size for steps whose requests all take the most probable codes, and
    one for all others, which knows every way to choose.
    """

    def __init__(
        self,
        model: ConditionedModel,
        batch_sizes: Iterable[int],
        device: torch.device,
        recorder: Recorder | None = None,
    ) -> None:
        """Makes them for a model; nothing is captured yet.

        Args:
            model: Completes the codes.
            batch_sizes: Those to capture.
            device: Where it computes.
            recorder: See `engine.cuda_graphs.GraphedFunction`.
        """
        self._model = model
        self._device = device
        sizes = tuple(batch_sizes)
        self._greedy = GraphedFunction(self._complete_greedily, sizes, device, recorder)
        self._sampled = GraphedFunction(self._complete, sizes, device, recorder)

    def capture(self, state: torch.Tensor) -> None:
        """Captures all of them, for states like this one, shape [1, hidden]."""
        model, device = self._model, self._device
        residual = model.codebooks - 1
        if not residual:
            return  # the token is all there is
        token = torch.zeros(1, dtype=torch.int64, device=device)
        if model.residual_codes:
            noise = torch.ones(1, residual, model.residual_codes, device=device)
            filters = CodeFilters.of([CodeSampling(1.0)], model.residual_codes, device)
            self._sampled.capture(state, token, noise, *_tensors(filters))
        self._greedy.capture(state, token)

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        """See `engine.conditioned_model.ConditionedModel.predict_codes`."""
        if choice is None:
            (codes,) = self._greedy(hidden_states, tokens)
        else:
            # All codes are candidates there; the filters leave those without noise no chance.
            room = self._model.residual_codes - choice.noise.shape[-1]
            noise = functional.pad(choice.noise, (0, room), value=1.0)
            filters = _tensors(choice.filters)
            (codes,) = self._sampled(hidden_states, tokens, noise, *filters)
        return codes

    def _complete_greedily(self, hidden_states: torch.Tensor, tokens: torch.Tensor) -> Tensors:
        return (self._model.predict_codes(hidden_states, tokens, None),)

    def _complete(
        self,
        hidden_states: torch.Tensor,
        tokens: torch.Tensor,
        noise: torch.Tensor,
        *filters: torch.Tensor,
    ) -> Tensors:
        choice = CodeChoice(noise, CodeFilters(*filters), limits=True, nucleus=True)
        return (self._model.predict_codes(hidden_states, tokens, choice),)


def _tensors(filters: CodeFilters) -> Tensors:
    return filters.warm, filters.heat, filters.top_k, filters.top_p
