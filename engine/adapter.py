"""Adapters: the pure conversion of one stage's output to the next stage's input (invariant 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.chunk import WordTiming

if TYPE_CHECKING:
    import torch


class Adapter(Protocol):
    """One request's conversion on one edge. Stateful, but free of I/O, threads and clocks.

    The runtime calls it on the host's engine thread. `pull` does a bounded amount of work a call,
    so that a long input is converted piece by piece as the consumer takes it.
    """

    def push(self, payload: Any) -> None:
        """Takes the next payload of the producing stage; cheap."""

    def close(self) -> None:
        """Says that the producing stage has ended."""

    def hurry(self) -> None:
        """The input stalls and the listener is about to run dry: hold nothing back.

        What waits for more input (a look-ahead, say) must end in a way that sounds like a pause.
        """

    def pull(self) -> Any | None:
        """Gives the next payload for the consuming stage; None: nothing without more input."""

    @property
    def finished(self) -> bool:
        """Whether the input is closed and everything was pulled."""


class IdentityAdapter:
    """Hands payloads on as they are."""

    def __init__(self) -> None:
        """Makes an empty adapter."""
        self._payloads: list[Any] = []
        self._closed = False

    def push(self, payload: Any) -> None:
        """Queues one payload."""
        self._payloads.append(payload)

    def close(self) -> None:
        """Ends the input."""
        self._closed = True

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> Any | None:
        """Gives the oldest payload."""
        return self._payloads.pop(0) if self._payloads else None

    @property
    def finished(self) -> bool:
        """Whether the input is closed and empty."""
        return self._closed and not self._payloads


@dataclass(frozen=True, slots=True)
class Padding:
    """What conditions the steps of a request for which there is no row.

    With padding, a request does not end with its last row: it goes on until its model samples the
    end token, or until its largest number of steps.

    Attributes:
        row: The row that such a step reads, shape [row width]; its vector is zero.
        while_open: Whether steps take it while more rows may come; otherwise they wait for those,
            and take it only behind the last row of a closed feed.
    """

    row: npt.NDArray[Any]
    while_open: bool = False


@dataclass(frozen=True, slots=True)
class FeedRows:
    """Conditioning for the next steps of an autoregressive stage, one row a step.

    Attributes:
        values: What the model's `embed_step` reads, shape [steps, row width], any dtype.
        tags: One object a row that travels with the step's output to the next adapter; opaque to
            the runtime. Empty: none has any.
        prompt_rows: How many of these rows are read before the first step's token is sampled, the
            last of them by that step. Only a request's first payload may have more than one.
        padding: What the request's steps read when there is no row; of the first payload.
        vectors: What a stage computed for these rows (hidden states, say), shape [steps, vector
            width], on that stage's device, where nobody waits for them. None: they are zero.
        places: Where the model's rotary embedding is to have the prompt's rows, int64, shape
            [rotary rows, prompt_rows]; of the first payload, for models that have several.
            None: they count up. The steps behind them count on from the largest.
    """

    values: npt.NDArray[Any]
    tags: tuple[Any, ...] = ()
    prompt_rows: int = 1
    padding: Padding | None = None
    vectors: torch.Tensor | None = None
    places: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Checks that every row has its tag and vector, and that the prompt is here."""
        if self.places is not None and self.places.shape[1] != self.prompt_rows:
            raise ValueError(
                f"A prompt of {self.prompt_rows} rows came with places for {self.places.shape[1]}."
            )
        if self.tags and len(self.values) != len(self.tags):
            raise ValueError(f"{len(self.values)} feed rows came with {len(self.tags)} tags.")
        if self.vectors is not None and len(self.values) != len(self.vectors):
            raise ValueError(f"{len(self.values)} feed rows came with {len(self.vectors)} vectors.")
        if self.prompt_rows < 1 or (self.prompt_rows > 1 and self.prompt_rows > len(self.values)):
            raise ValueError(
                f"{len(self.values)} feed rows came with prompt_rows of {self.prompt_rows}; it "
                "must be from 1 to the number of rows."
            )


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What one step of an autoregressive stage made for one request.

    Attributes:
        codes: The step's codes, codebook 0 (the sampled token) first, shape [codebooks].
        hidden_state: The last layer's state at this step, shape [hidden], if the stage emits it.
        tag: The tag of the feed row that conditioned this step, if it had one.
    """

    codes: npt.NDArray[np.int64]
    hidden_state: Any | None
    tag: Any | None


@dataclass(frozen=True, slots=True)
class GenerationInput:
    """Input of a generation stage.

    Attributes:
        units: How many of the stage's units (frames, say) `data` holds.
        data: What the stage's module reads.
        words: Words that begin in these units, times from the response's first sample.
    """

    units: int
    data: Any
    words: tuple[WordTiming, ...] = ()
