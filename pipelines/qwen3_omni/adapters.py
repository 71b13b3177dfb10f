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
        places: Of the prompt's tokens, shape [3, prompt positions]; None: they count up.
    """

    token_ids: npt.NDArray[np.int64]
    embeddings: Rows
    states: Rows
    places: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, payloads: list[HiddenStatesPayload]) -> Positions:
        """What some payloads hold, in order."""
        tokens = [token for payload in payloads for token in payload.token_ids]
        return cls(
            np.array(tokens, np.int64),
            _array([payload.embeddings for payload in payloads]),
            _array([payload.states for payload in payloads]),
            _places([payload.places for payload in payloads]),
        )


def _array(parts: list[torch.Tensor]) -> Rows:
    values: Rows = torch.cat(parts).float().cpu().numpy()
    return values


def _places(parts: list[torch.Tensor | None]) -> npt.NDArray[np.int64] | None:
    known = [places for places in parts if places is not None]
    return np.asarray(torch.cat(known, dim=1), np.int64) if known else None


def spoken_places(
    tokens: npt.NDArray[np.int64], places: npt.NDArray[np.int64], picture: int
) -> npt.NDArray[np.int64]:
    """Where the Talker has what it reads: pictures keep their shape, the rest counts on.

    Args:
        tokens: Of the users' messages, shape [rows].
        places: Where the Thinker has them, shape [3, rows].
        picture: The token that stands for a piece of a picture.

    Returns:
        Shape [3, rows].
    """
    result = np.empty_like(places)
    following = 0
    # Runs of pieces of one picture; pictures have marks between them.
    edges = np.flatnonzero(np.diff(tokens == picture, prepend=False, append=False))
    start = 0
    for first, stop in edges.reshape(-1, 2):
        result[:, start:first] = following + np.arange(first - start)
        following += first - start
        block = places[:, first:stop]
        result[:, first:stop] = block - block.min() + following
        following += block.max() - block.min() + 1
        start = stop
    result[:, start:] = following + np.arange(len(tokens) - start)
    return result


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
        users = self._users(positions, prompt_tokens)
        heard = self._heard(positions, users)
        opening = self._opening(positions, prompt_tokens)
        prompt = np.concatenate([heard, opening])
        following = vector_rows(RowKind.TEXT, positions.embeddings[prompt_tokens + 1 :])
        padding = Padding(self._mark(RowKind.PAD)[0])
        rows = np.concatenate([prompt, following])
        places = self._prompt_places(positions, users, len(prompt))
        self._rows.append(FeedRows(rows, (), len(prompt), padding, places))
        self._begun = True
        self._prompt.clear()

    def _prompt_places(
        self, positions: Positions, users: npt.NDArray[np.int64], rows: int
    ) -> npt.NDArray[np.int64] | None:
        """Where the Talker has its prompt; None: it counts up."""
        if positions.places is None:
            return None
        tokens, places = positions.token_ids[users], positions.places[:, users]
        heard = spoken_places(tokens, places, self._tokens.picture)
        following = int(heard.max(initial=-1)) + 1
        opening = np.arange(following, following + rows - len(users))
        return np.concatenate([heard, np.tile(opening, (len(heard), 1))], axis=1)

    def _users(self, positions: Positions, prompt_tokens: int) -> npt.NDArray[np.int64]:
        """Which positions are users' messages."""
        tokens = positions.token_ids[:prompt_tokens]
        places = np.arange(prompt_tokens)
        begins = np.maximum.accumulate(np.where(tokens == self._tokens.message_begin, places, -1))
        roles = tokens[np.minimum(np.maximum(begins, 0) + 1, prompt_tokens - 1)]
        return places[roles == self._tokens.user]

    def _heard(self, positions: Positions, users: npt.NDArray[np.int64]) -> Rows:
        """The users' messages: states of what is heard or seen, embeddings of text."""
        tokens = positions.token_ids
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
