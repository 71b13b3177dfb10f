"""What a model must offer to be a conditioned autoregressive stage (a Talker)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from engine.code_choice import CodeChoice
from engine.device import to_device
from engine.feed import Feed


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What a step's positions read, in batch order, on the model's device.

    Attributes:
        rows: Their conditioning rows, shape [positions, row width].
        previous_codes: The codes of the step before each, int64, shape [positions, codebooks]; -1
            where there is none (a request's prompt).
        vectors: Their rows' vectors, shape [positions, vector width]; zero where there is none.
    """

    rows: torch.Tensor
    previous_codes: torch.Tensor
    vectors: torch.Tensor


@runtime_checkable
class ConditionedModel(Protocol):
    """A vLLM model whose every step is conditioned on a row from outside.

    Beside vLLM's own interface (`forward`, `compute_logits`, `embed_input_ids`) it offers what
    follows. On a GPU the host waits for the device once a step, when codes are given out: neither
    method may wait, nor move values between host and device.

    Attributes:
        row_width: Columns of a feed row.
        row_dtype: numpy dtype of a feed row.
        vector_width: Columns of a row's vector, which another stage computed; 0: rows have none.
        codebooks: Codes a step, the sampled token included.
        residual_codes: Codes in each of the codebooks behind the first; 0 if the model takes the
            most probable ones, whatever the request wants.
        begin_token: The token that stands for the prompt's rows. vLLM counts it as one that was
            sampled before: where repetition is penalised, it should be one that never is.
        end_token: The token that ends a request when it is sampled; None: requests end with
            their last row. Nothing is given out for it.
    """

    row_width: int
    row_dtype: np.dtype[np.generic]
    vector_width: int
    codebooks: int
    residual_codes: int
    begin_token: int
    end_token: int | None

    def embed_step(self, inputs: StepInputs) -> torch.Tensor:
        """Input embeddings of steps and of prompt rows, shape [positions, hidden]."""

    def predict_codes(
        self, hidden_states: torch.Tensor, tokens: torch.Tensor, choice: CodeChoice | None
    ) -> torch.Tensor:
        """All codes of a step, from the last layer's state and the token that was sampled.

        A request's codes must depend on its own state and token alone. On a GPU it is captured as
        a CUDA graph.

        Args:
            hidden_states: Shape [requests, hidden].
            tokens: The sampled tokens, int64, shape [requests]; of a request whose prompt is not
                read whole in this step, or that ends, any token.
            choice: For `engine.code_choice.choose`, which chooses the codes of a codebook.

        Returns:
            int64, shape [requests, codebooks], the tokens in column 0.
        """


def gather_step_inputs(
    model: ConditionedModel,
    feeds: Sequence[Feed | None],
    starts: Sequence[int],
    counts: Sequence[int],
    device: torch.device,
) -> StepInputs:
    """What a batch's scheduled positions read, in batch order; nobody waits for the device.

    Args:
        model: Tells widths and types.
        feeds: The requests' feeds; None for one that is not conditioned (a dummy run).
        starts: Each request's first scheduled position.
        counts: How many positions each has.
        device: The model's.
    """
    total = sum(counts)
    rows = np.zeros((total, model.row_width), model.row_dtype)
    codes = np.full((total, model.codebooks), -1, np.int64)
    vectors: list[torch.Tensor] = []
    offset = 0
    for feed, start, count in zip(feeds, starts, counts, strict=True):
        stop = start + count
        if feed is not None:
            rows[offset : offset + count] = feed.rows_at(start, stop)
            first = max(start, feed.prompt_rows)
            if stop > first:
                previous = feed.codes.span(first - feed.prompt_rows, stop - feed.prompt_rows)
                codes[offset + first - start : offset + count] = previous
        if feed is not None and feed.vectors is not None:
            vectors += feed.vectors.span(start, stop)
        elif model.vector_width:
            vectors.append(torch.zeros(count, model.vector_width, device=device))
        offset += count
    return StepInputs(
        to_device(torch.from_numpy(rows), device),
        to_device(torch.from_numpy(codes), device),
        torch.cat(vectors) if vectors else torch.empty(total, 0, device=device),
    )
