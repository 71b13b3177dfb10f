"""What a model must offer to be a conditioned autoregressive stage (a Talker)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from engine.feed import Feed

ChooseCodes = Callable[[torch.Tensor], torch.Tensor]
"""Chooses the next codebook's codes as each request wants: logits [requests, codes] in, int64
[requests] out. `engine.step_sampling.CodeChooser` is one."""


@runtime_checkable
class ConditionedModel(Protocol):
    """A vLLM model whose every step is conditioned on a row from outside.

    Beside vLLM's own interface (`forward`, `compute_logits`, `embed_input_ids`) it offers:

    Attributes:
        row_width: Columns of a feed row.
        row_dtype: numpy dtype of a feed row.
        codebooks: Codes a step, the sampled token included.
        begin_token: The token that stands for the prompt's rows. vLLM counts it as one that was
            sampled before: where repetition is penalised, it should be one that never is.
        end_token: The token that ends a request when it is sampled; None: requests end with
            their last row. Nothing is predicted or given out for it.
    """

    row_width: int
    row_dtype: np.dtype[np.generic]
    codebooks: int
    begin_token: int
    end_token: int | None

    def embed_step(
        self, input_ids: torch.Tensor, rows: torch.Tensor, previous_codes: torch.Tensor
    ) -> torch.Tensor:
        """Input embeddings of steps and of prompt rows.

        Args:
            input_ids: The tokens before each step, int64, shape [steps].
            rows: Their conditioning rows, shape [steps, row width].
            previous_codes: The codes of the step before each, shape [steps, codebooks]; -1 where
                there is none (a request's prompt).

        Returns:
            Shape [steps, hidden].
        """

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choose: ChooseCodes
    ) -> torch.Tensor:
        """All codes of a step, from the last layer's state and the token that was sampled.

        Args:
            hidden_states: Shape [requests, hidden].
            tokens: The sampled tokens, int64, shape [requests].
            choose: Chooses a codebook's codes; called once for each codebook behind the first. A
                model that knows only one way may leave it alone.

        Returns:
            int64, shape [requests, codebooks], the tokens in column 0.
        """


def gather_step_inputs(
    model: ConditionedModel,
    feeds: list[Feed | None],
    starts: list[int],
    counts: list[int],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and previous codes of a batch's scheduled positions, in batch order.

    Args:
        model: Tells widths and types.
        feeds: The requests' feeds; None for one that is not conditioned (a dummy run).
        starts: Each request's first scheduled position.
        counts: How many positions each has.

    Returns:
        Rows [positions, row width] and codes [positions, codebooks] as tensors on the CPU.
    """
    total = sum(counts)
    rows = np.zeros((total, model.row_width), model.row_dtype)
    codes = np.full((total, model.codebooks), -1, np.int64)
    offset = 0
    for feed, start, count in zip(feeds, starts, counts, strict=True):
        if feed is not None:
            stop = start + count
            rows[offset : offset + count] = feed.rows_at(start, stop)
            first = max(start, feed.prompt_rows)
            if stop > first:
                previous = feed.codes.span(first - feed.prompt_rows, stop - feed.prompt_rows)
                codes[offset + first - start : offset + count] = previous
        offset += count
    return torch.from_numpy(rows), torch.from_numpy(codes)
