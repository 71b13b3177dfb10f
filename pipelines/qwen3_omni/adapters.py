"""From the Thinker to the Talker, and from there to Code2Wav; as the reference's `generate`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.adapter import FeedRows, GenerationInput, Padding, StepOutput
from engine.hidden_states import HiddenStatesPayload
from pipelines.qwen3_omni.configuration import TalkerTokens
from pipelines.qwen3_omni.rows import NO_CODEC, RowKind, Rows, mark_row, vector_rows

ROLE_TOKENS = 3
"""What opens an answer: the begin of a message, the assistant's role, a line break."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of the Thinker on their way, on the CPU.

    Attributes:
        token_ids: Shape [positions].
        embeddings: Shape [positions, hidden].
        states: Shape [positions, hidden].
    """

    token_ids: npt.NDArray[np.int64]
    embeddings: Rows
    states: Rows

    @classmethod
    def of(cls, payloads: list[HiddenStatesPayload]) -> Positions:
        """What some payloads hold, in order."""
        tokens = [token for payload in payloads for token in payload.token_ids]
        return cls(
            np.array(tokens, np.int64),
            _array([payload.embeddings for payload in payloads]),
            _array([payload.states for payload in payloads]),
        )


def _array(parts: list[torch.Tensor]) -> Rows:
    values: Rows = torch.cat(parts).float().cpu().numpy()
    return values


class StatesToRows:
    """One request's positions of the Thinker as rows of the Talker.

    The Talker's prompt is what users said, then the opening of the answer with the voice, and the
    answer's first token. Each further token is a row; the end mark follows the last, then padding.
    """

    def __init__(self, tokens: TalkerTokens, speaker: int) -> None:
        """Makes an adapter for a voice, named by its codec token."""
        self._tokens = tokens
        self._speaker = speaker
        self._prompt: list[HiddenStatesPayload] = []
        self._rows: deque[FeedRows] = deque()
        self._begun = False
        self._closed = False
        self._ended = False

    def push(self, payload: HiddenStatesPayload) -> None:
        """Takes positions."""
        if self._begun:
            self._rows.append(FeedRows(self._text(payload)))
            return
        self._prompt.append(payload)
        if payload.start + len(payload.token_ids) > payload.prompt_tokens:
            self._begin(Positions.of(self._prompt), payload.prompt_tokens)

    def close(self) -> None:
        """Ends the answer. One without a single token that was read on has no speech."""
        self._closed = True
        self._prompt.clear()
        if self._begun:
            self._rows.append(FeedRows(self._mark(RowKind.END)))

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> FeedRows | None:
        """The oldest rows."""
        return self._rows.popleft() if self._rows else None

    @property
    def finished(self) -> bool:
        """Whether the answer ended and everything was given."""
        return self._closed and not self._rows

    def _begin(self, positions: Positions, prompt_tokens: int) -> None:
        """Makes the Talker's prompt, and rows of what came with its end."""
        heard = self._heard(positions, prompt_tokens)
        opening = self._opening(positions, prompt_tokens)
        prompt = np.concatenate([heard, opening])
        following = vector_rows(RowKind.TEXT, positions.embeddings[prompt_tokens + 1 :])
        padding = Padding(self._mark(RowKind.PAD)[0])
        rows = np.concatenate([prompt, following])
        self._rows.append(FeedRows(rows, prompt_rows=len(prompt), padding=padding))
        self._begun = True
        self._prompt.clear()

    def _heard(self, positions: Positions, prompt_tokens: int) -> Rows:
        """The users' messages: states where there is sound, embeddings where there is text."""
        tokens = positions.token_ids[:prompt_tokens]
        places = np.arange(prompt_tokens)
        begins = np.maximum.accumulate(np.where(tokens == self._tokens.message_begin, places, -1))
        roles = tokens[np.minimum(np.maximum(begins, 0) + 1, prompt_tokens - 1)]
        users = places[roles == self._tokens.user]
        media = np.isin(tokens[users], self._tokens.media)
        vectors = np.where(
            media[:, None], positions.states[users], positions.embeddings[users]
        ).astype(np.float32)
        return vector_rows(np.where(media, int(RowKind.MEDIA), int(RowKind.TEXT)), vectors)

    def _opening(self, positions: Positions, prompt_tokens: int) -> Rows:
        """The answer's opening, in which the voice is named, and its first token."""
        tokens = self._tokens
        role = positions.embeddings[prompt_tokens - ROLE_TOKENS : prompt_tokens]
        first = positions.embeddings[prompt_tokens : prompt_tokens + 1]
        named = (tokens.no_think, tokens.think_begin, tokens.think_end, self._speaker)
        return np.concatenate(
            [
                vector_rows(RowKind.TEXT, role),
                *(self._mark(RowKind.PAD, codec) for codec in named),
                self._mark(RowKind.BEGIN, tokens.codec_pad),
                vector_rows(RowKind.TEXT, first, tokens.codec_begin),
            ]
        )

    def _text(self, payload: HiddenStatesPayload) -> Rows:
        return vector_rows(RowKind.TEXT, _array([payload.embeddings]))

    def _mark(self, kind: RowKind, codec: int = NO_CODEC) -> Rows:
        return mark_row(kind, self._tokens.thinker_hidden, codec)


class CodesToFrames:
    """The Talker's codes as frames of the decoder."""

    def __init__(self) -> None:
        """Makes an empty adapter."""
        self._frames: deque[Any] = deque()
        self._closed = False

    def push(self, payload: StepOutput) -> None:
        """Takes one step's codes."""
        self._frames.append(payload.codes)

    def close(self) -> None:
        """Ends the speech."""
        self._closed = True

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> GenerationInput | None:
        """The oldest frame."""
        return GenerationInput(1, self._frames.popleft()) if self._frames else None

    @property
    def finished(self) -> bool:
        """Whether the speech ended and every frame was given."""
        return self._closed and not self._frames
