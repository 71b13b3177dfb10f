"""Hidden states of a text stage (a Thinker), on their way to the stage that speaks from them.

The model runner puts each step's rows of the requests that want them into the replica's store;
the replica takes them out after the step and sends them beside the text. Nothing is kept that
was taken, and what a preempted request computes a second time is given only once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LAYER_KEY = "antiphon_hidden_state_layer"
"""Where vLLM's `additional_config` names the layer to the model runner."""

FINAL_LAYER = -1
"""The last layer's states, after the final norm: what the logits are computed from."""


@dataclass(frozen=True, slots=True)
class HiddenStatesPayload:
    """States of a run of positions, prompt or answer, that follows the one before it.

    A sampled token has its states one step later, when it is the model's input; the answer's last
    token therefore has none.

    Attributes:
        start: The first position in the sequence.
        token_ids: The tokens at these positions.
        prompt_tokens: How many positions the prompt has; the answer's come behind them.
        embeddings: What enters the first layer (encoded sound in the place of its tokens), shape
            [positions, hidden], on the stage's device.
        states: What the chosen layer gives, shape [positions, hidden], on the stage's device.
        places: Where the model's rotary embedding has the prompt's tokens among these, int64, shape
            [rotary rows, prompt positions], on the CPU; None: they count up, as text does.
    """

    start: int
    token_ids: tuple[int, ...]
    prompt_tokens: int
    embeddings: torch.Tensor
    states: torch.Tensor
    places: torch.Tensor | None = None


@dataclass(slots=True)
class Rows:
    """Rows of one request that were not taken yet.

    Attributes:
        start: The position of the next row to take.
        embeddings: Pieces in order, each of shape [rows, hidden].
        states: The same positions' pieces of the chosen layer.
    """

    start: int = 0
    embeddings: list[torch.Tensor] = field(default_factory=list)
    states: list[torch.Tensor] = field(default_factory=list)

    @property
    def stop(self) -> int:
        """The position behind the last row."""
        return self.start + sum(len(piece) for piece in self.states)


class HiddenStateStore:
    """States that were computed and not taken yet, by request; never by place in a batch."""

    def __init__(self) -> None:
        """Makes an empty store."""
        self._rows: dict[str, Rows] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def watch(self, request_id: str) -> None:
        """Asks for a request's states from now on.

        Raises:
            ValueError: They are asked for already.
        """
        if request_id in self._rows:
            raise ValueError(f"The states of request {request_id!r} are kept already.")
        self._rows[request_id] = Rows()

    def watches(self, request_id: str) -> bool:
        """Whether a request's states are asked for."""
        return request_id in self._rows

    def append(
        self, request_id: str, start: int, embeddings: torch.Tensor, states: torch.Tensor
    ) -> None:
        """Adds the rows of positions from `start` on; what is known already is left out.

        Raises:
            ValueError: Positions between the last known row and `start` were never computed.
        """
        rows = self._rows[request_id]
        known = rows.stop - start
        if known < 0:
            raise ValueError(
                f"The states of request {request_id!r} jump from position {rows.stop} to {start}."
            )
        if known < len(states):
            rows.embeddings.append(embeddings[known:].clone())
            rows.states.append(states[known:].clone())

    def take(self, request_id: str) -> Rows | None:
        """Takes a request's rows; None: there are none, or it does not want them."""
        rows = self._rows.get(request_id)
        if rows is None or not rows.states:
            return None
        self._rows[request_id] = Rows(start=rows.stop)
        return rows

    def forget(self, request_id: str) -> None:
        """Drops a request and its rows; harmless if it is not there."""
        self._rows.pop(request_id, None)
