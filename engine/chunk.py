"""The one envelope that travels between stages and to the client (invariant 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from engine.errors import StageError

Payload = TypeVar("Payload", covariant=True)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[Payload]):
    """One piece of a request's output at one stage.

    Per request, epoch and stage, `seq` counts from 0 without gaps and exactly one chunk is final.
    A failure is a final chunk that carries an error.

    Attributes:
        request: The request's identifier.
        epoch: The generation number of the session's output.
        stage: The stage that made this chunk.
        seq: The position in the stream, gapless from 0.
        payload: What was made; None only on a final chunk without data.
        final: Whether this is the last chunk of the stream.
        error: Why the stream ended, when it did not end well.
    """

    request: str
    epoch: int
    stage: str
    seq: int
    payload: Payload | None
    final: bool = False
    error: StageError | None = None


@dataclass(frozen=True, slots=True)
class TextPayload:
    """A piece of text, a delta and never cumulative.

    Attributes:
        text: The text that follows what came before.
        flush: Everything so far may be spoken to its end without waiting for more.
    """

    text: str
    flush: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallPayload:
    """A call of a client's function, complete and valid.

    Attributes:
        call_id: Names the call.
        name: The function.
        arguments: Its arguments as a JSON text.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UsagePayload:
    """What a Thinker's answer took; the last payload of its stream.

    Attributes:
        input_tokens: Tokens of the conversation.
        cached_tokens: How many of those were not computed again.
        output_tokens: Tokens of the answer.
        truncated: Whether the answer ended at the token limit.
    """

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class WordTiming:
    """When one written word of the input is heard.

    Attributes:
        text: The word, verbatim as in the input.
        start_character: Offset of its first character in the whole input.
        end_character: Offset behind its last character.
        start: Seconds from the first sample of the response.
        end: Seconds from the first sample of the response.
    """

    text: str
    start_character: int
    end_character: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class AudioPayload:
    """A run of mono samples that follows the one before it.

    Attributes:
        samples: float32 in [-1, 1], shape [samples].
        sample_rate: Samples a second.
        words: Words whose end is known now and whose sound has begun by this chunk, in order.
    """

    samples: npt.NDArray[np.float32]
    sample_rate: int
    words: tuple[WordTiming, ...] = ()

    @property
    def seconds(self) -> float:
        """The duration of the samples in seconds."""
        return len(self.samples) / self.sample_rate
