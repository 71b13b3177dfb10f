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
from pipelines.qwen2_5_omni.talker import NO_CODE
from pipelines.qwen2_5_omni.token2mel import MelPayload

Rows = npt.NDArray[np.float32]

ROLE_TOKENS = 3
"""What opens an answer: the begin of a message, the assistant's role, a line break."""


@dataclass(frozen=True, slots=True)
class TalkerTokens:
    """What the Talker's rows are made with.

    Attributes:
        codec_pad: Is added to the row that opens the reply.
        codec_begin: Is added to the reply's first row.
        media: Text tokens that stand for sound (or pictures).
        message_begin: The text token that begins a message.
        message_end: The text token that ends one.
        begin: The Thinker's embedding of the speaker's token, shape [hidden].
        end: That of the token behind the reply's last.
        pad: That of the token that follows for ever.
    """

    codec_pad: int
    codec_begin: int
    media: tuple[int, ...]
    message_begin: int
    message_end: int
    begin: Rows
    end: Rows
    pad: Rows


class StatesToRows:
    """One request's positions of the Thinker as rows of the Talker.

    The prompt is the whole conversation (states plus embeddings; of sound the states alone), the
    speaker's token and the reply's first token. Each further token of the reply is a row; the end
    follows the last, then padding until the Talker ends.
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
                self._rows.append(FeedRows(_with_code(self._spoken(payload))))
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
            self._rows.append(FeedRows(_with_code(self._tokens.end[None])))

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
        vectors = np.concatenate([self._spoken(payload) for payload in self._waiting])
        first, stop = prompt_tokens, len(vectors)
        if self._replied:
            first, stop = self._reply()
        self._waiting.clear()
        if first >= stop:
            return
        tokens = self._tokens
        prompt = np.concatenate(
            [
                _with_code(vectors[:first]),
                _with_code(tokens.begin[None], tokens.codec_pad),
                _with_code(vectors[first : first + 1], tokens.codec_begin),
            ]
        )
        rows = np.concatenate([prompt, _with_code(vectors[first + 1 : stop])])
        padding = Padding(_with_code(tokens.pad[None])[0])
        self._rows.append(FeedRows(rows, prompt_rows=len(prompt), padding=padding))
        self._begun = True

    def _reply(self) -> tuple[int, int]:
        """Where the last message's text begins and ends."""
        ids = [token for payload in self._waiting for token in payload.token_ids]
        begin = len(ids) - 1 - ids[::-1].index(self._tokens.message_begin)
        return begin + ROLE_TOKENS, ids.index(self._tokens.message_end, begin)

    def _spoken(self, payload: HiddenStatesPayload) -> Rows:
        """States plus embeddings, shape [positions, hidden]; of the prompt's sound states alone."""
        heard = payload.prompt_tokens - payload.start
        media = torch.tensor(
            [
                place < heard and token in self._tokens.media
                for place, token in enumerate(payload.token_ids)
            ]
        )
        embeddings = payload.embeddings.float().cpu().masked_fill(media[:, None], 0.0)
        vectors: Rows = (payload.states.float().cpu() + embeddings).numpy()
        return vectors


def _with_code(vectors: Rows, code: int = NO_CODE) -> Rows:
    return np.concatenate([vectors, np.full((len(vectors), 1), code, np.float32)], axis=1)


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
