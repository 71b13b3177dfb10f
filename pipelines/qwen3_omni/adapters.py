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
from pipelines.qwen3_omni.rows import RowKind, Rows, rows_of

ROLE_TOKENS = 3
"""What opens an answer: the begin of a message, the assistant's role, a line break."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of the Thinker on their way.

    Attributes:
        token_ids: Shape [positions].
        embeddings: Shape [positions, hidden], on the Thinker's device.
        states: Shape [positions, hidden], on the Thinker's device.
        places: Of the prompt's tokens, shape [3, prompt positions]; None: they count up.
    """

    token_ids: npt.NDArray[np.int64]
    embeddings: torch.Tensor
    states: torch.Tensor
    places: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, payloads: list[HiddenStatesPayload]) -> Positions:
        """What some payloads hold, in order."""
        tokens = [token for payload in payloads for token in payload.token_ids]
        return cls(
            np.array(tokens, np.int64),
            torch.cat([payload.embeddings for payload in payloads]),
            torch.cat([payload.states for payload in payloads]),
            _places([payload.places for payload in payloads]),
        )


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
    Positions stay on the Thinker's device: they are chosen by slices alone, and nobody waits.
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
            rows = rows_of(RowKind.TEXT, len(payload.token_ids))
            self._rows.append(FeedRows(rows, vectors=payload.embeddings))
            return
        self._prompt.append(payload)
        if payload.start + len(payload.token_ids) > payload.prompt_tokens:
            self._begin(Positions.of(self._prompt), payload.prompt_tokens)

    def close(self) -> None:
        """Ends the answer. One without a single token that was read on has no speech."""
        self._closed = True
        self._prompt.clear()
        if self._begun:
            self._rows.append(FeedRows(rows_of(RowKind.END, 1)))

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
        embeddings = positions.embeddings
        users = self._users(positions, prompt_tokens)
        heard, vectors = self._heard(positions, users)
        opening = self._opening()
        prompt = np.concatenate([heard, opening])
        following = rows_of(RowKind.TEXT, len(embeddings) - prompt_tokens - 1)
        # The opening: the assistant's role, marks without vectors, and the answer's first token.
        vectors.append(embeddings[prompt_tokens - ROLE_TOKENS : prompt_tokens])
        marks = len(opening) - ROLE_TOKENS - 1
        vectors.append(embeddings.new_zeros(marks, embeddings.shape[1]))
        vectors.append(embeddings[prompt_tokens:])
        self._rows.append(
            FeedRows(
                np.concatenate([prompt, following]),
                prompt_rows=len(prompt),
                padding=Padding(rows_of(RowKind.PAD, 1)[0]),
                vectors=torch.cat(vectors),
                places=self._prompt_places(positions, users, len(prompt)),
            )
        )
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

    def _heard(
        self, positions: Positions, users: npt.NDArray[np.int64]
    ) -> tuple[Rows, list[torch.Tensor]]:
        """The users' messages: states of what is heard or seen, embeddings of text."""
        media = np.isin(positions.token_ids[users], self._tokens.media)
        breaks = np.flatnonzero((np.diff(users) != 1) | (np.diff(media) != 0)) + 1
        vectors = [
            (positions.states if media[run[0]] else positions.embeddings)[
                users[run[0]] : users[run[-1]] + 1
            ]
            for run in np.split(np.arange(len(users)), breaks)
            if len(run)
        ]
        return rows_of(np.where(media, RowKind.MEDIA, RowKind.TEXT), len(users)), vectors

    def _opening(self) -> Rows:
        """The answer's opening, in which the voice is named, and its first token."""
        tokens = self._tokens
        named = (tokens.no_think, tokens.think_begin, tokens.think_end, self._speaker)
        return np.concatenate(
            [
                rows_of(RowKind.TEXT, ROLE_TOKENS),
                *(rows_of(RowKind.PAD, 1, codec) for codec in named),
                rows_of(RowKind.BEGIN, 1, tokens.codec_pad),
                rows_of(RowKind.TEXT, 1, tokens.codec_begin),
            ]
        )


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
