"""From the Thinker to the Talker and on to Token2Wav; as the reference's `generate`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.adapter import FeedRows, GenerationInput, Padding, StepOutput
from engine.diffusion_module import DiffusionInput
from engine.hidden_states import HiddenStatesPayload
from pipelines.qwen2_5_omni.rows import mark_row, vector_rows
from pipelines.qwen2_5_omni.token2mel import MelPayload

ROLE_TOKENS = 3
"""What opens an answer: the begin of a message, the assistant's role, a line break."""


OPENING_ROWS = 2
"""What follows the conversation in the Talker's prompt: the speaker and the reply's first token."""


@dataclass(frozen=True, slots=True)
class TalkerTokens:
    """What the Talker's rows are made with.

    Attributes:
        codec_pad: Is added to the row that opens the reply.
        codec_begin: Is added to the reply's first row.
        media: Text tokens that stand for sound (or pictures).
        message_begin: The text token that begins a message.
        message_end: The text token that ends one.
        begin: The mark for the speaker's token.
        end: The mark for what is behind the reply's last token.
        pad: The mark for what follows for ever.
    """

    codec_pad: int
    codec_begin: int
    media: tuple[int, ...]
    message_begin: int
    message_end: int
    begin: int
    end: int
    pad: int


class StatesToRows:
    """One request's positions of the Thinker as rows of the Talker.

    The prompt is the whole conversation (states plus embeddings; of sound the states alone), the
    speaker's token and the reply's first token. Each further token of the reply is a row; the end
    follows the last, then padding until the Talker ends. Positions stay on the Thinker's device:
    they are chosen by slices alone, and nobody waits.
    """

    def __init__(self, tokens: TalkerTokens, *, replied: bool = False) -> None:
        """Makes an adapter.

        Args:
            tokens: What rows are made with.
            replied: Whether the Thinker's prompt holds the reply already, as its last message;
                what the Thinker writes behind it is then left out.
        """
        self._tokens = tokens
        self._replied = replied
        self._waiting: list[HiddenStatesPayload] = []
        self._rows: deque[FeedRows] = deque()
        self._begun = False
        self._closed = False

    def push(self, payload: HiddenStatesPayload) -> None:
        """Takes positions."""
        if self._begun:
            if not self._replied:
                vectors = self._spoken(payload)
                self._rows.append(FeedRows(vector_rows(len(vectors)), vectors=vectors))
            return
        self._waiting.append(payload)
        known = payload.start + len(payload.token_ids)
        if known > payload.prompt_tokens or (self._replied and known == payload.prompt_tokens):
            self._begin(payload.prompt_tokens)

    def close(self) -> None:
        """Ends the reply. One without a single token that was read on has no speech."""
        self._closed = True
        self._waiting.clear()
        if self._begun:
            self._rows.append(FeedRows(mark_row(self._tokens.end)))

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> FeedRows | None:
        """The oldest rows."""
        return self._rows.popleft() if self._rows else None

    @property
    def finished(self) -> bool:
        """Whether the reply ended and everything was given."""
        return self._closed and not self._rows

    def _begin(self, prompt_tokens: int) -> None:
        vectors = torch.cat([self._spoken(payload) for payload in self._waiting])
        first, stop = prompt_tokens, len(vectors)
        if self._replied:
            first, stop = self._reply()
        places = _places([payload.places for payload in self._waiting])
        self._waiting.clear()
        if first >= stop:
            return
        tokens = self._tokens
        prompt = [
            vector_rows(first),
            mark_row(tokens.begin, tokens.codec_pad),
            vector_rows(1, tokens.codec_begin),
        ]
        self._rows.append(
            FeedRows(
                np.concatenate([*prompt, vector_rows(stop - first - 1)]),
                prompt_rows=first + 2,
                padding=Padding(mark_row(tokens.pad)[0]),
                places=places,
                vectors=torch.cat(
                    [vectors[:first], torch.zeros_like(vectors[:1]), vectors[first:stop]]
                ),
            )
        )
        self._begun = True

    def _reply(self) -> tuple[int, int]:
        """Where the last message's text begins and ends."""
        ids = [token for payload in self._waiting for token in payload.token_ids]
        begin = len(ids) - 1 - ids[::-1].index(self._tokens.message_begin)
        return begin + ROLE_TOKENS, ids.index(self._tokens.message_end, begin)

    def _spoken(self, payload: HiddenStatesPayload) -> torch.Tensor:
        """States plus embeddings, shape [positions, hidden]; of the prompt's sound states alone."""
        vectors = payload.states + payload.embeddings
        heard = max(payload.prompt_tokens - payload.start, 0)
        media = np.isin(payload.token_ids[:heard], self._tokens.media).astype(np.int8)
        edges = np.flatnonzero(np.diff(media, prepend=0, append=0))
        for start, stop in edges.reshape(-1, 2).tolist():
            vectors[start:stop].copy_(payload.states[start:stop])
        return vectors


def _places(parts: list[torch.Tensor | None]) -> npt.NDArray[np.int64] | None:
    """Where the Talker has its prompt: the conversation as the Thinker has it, then two more."""
    known = [places for places in parts if places is not None]
    if not known:
        return None
    places = np.asarray(torch.cat(known, dim=1), np.int64)
    opening = places.max() + np.arange(1, 1 + OPENING_ROWS)
    return np.concatenate([places, np.tile(opening, (len(places), 1))], axis=1)


class CodesToUnits:
    """The Talker's codes as input of the diffusion stage; an end token is none."""

    def __init__(self, end_tokens: tuple[int, ...]) -> None:
        """Makes an empty adapter."""
        self._end_tokens = end_tokens
        self._codes: deque[npt.NDArray[np.int64]] = deque()
        self._closed = False

    def push(self, payload: StepOutput) -> None:
        """Takes one step's code."""
        if payload.codes[0] not in self._end_tokens:
            self._codes.append(payload.codes)

    def close(self) -> None:
        """Ends the speech."""
        self._closed = True

    def hurry(self) -> None:
        """A segment is denoised with its look-ahead or not at all."""

    def pull(self) -> DiffusionInput | None:
        """The oldest code."""
        return DiffusionInput(1, self._codes.popleft()) if self._codes else None

    @property
    def finished(self) -> bool:
        """Whether the speech ended and every code was given."""
        return self._closed and not self._codes


LARGEST_PIECE = 24
"""Mel frames that the vocoder is given at a time."""


class MelToFrames:
    """Mel frames as input of the vocoder."""

    def __init__(self) -> None:
        """Makes an empty adapter."""
        self._frames: deque[torch.Tensor] = deque()
        self._closed = False

    def push(self, payload: MelPayload) -> None:
        """Takes a segment's frames."""
        self._frames.extend(payload.frames.split(LARGEST_PIECE))

    def close(self) -> None:
        """Ends the speech."""
        self._closed = True

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> GenerationInput | None:
        """The oldest frames."""
        if not self._frames:
            return None
        frames = self._frames.popleft()
        return GenerationInput(len(frames), frames)

    @property
    def finished(self) -> bool:
        """Whether the speech ended and every frame was given."""
        return self._closed and not self._frames
