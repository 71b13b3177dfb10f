"""The Talker's conditioning rows: what every position of its sequence is made of.

The layouts are those of the reference's `generate` (package `qwen-tts`), in its streaming mode,
where the text follows token by token while the Talker speaks, and in its other one, where the
whole text is read first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.adapter import FeedRows, Padding
from pipelines.qwen3_tts.configuration import Checkpoint, Variant

Rows = npt.NDArray[np.int32]

NOTHING = -1
"""Stands where a row has no text token or no code."""


def row_width(codebooks: int, speaker_width: int) -> int:
    """Columns of a row: a text token, a frame's codes, the bits of a speaker embedding.

    Args:
        codebooks: Codes of a frame.
        speaker_width: Width of a speaker embedding, float32; 0 where voices are not cloned.
    """
    return 1 + codebooks + speaker_width


@dataclass(frozen=True, slots=True)
class VoicePrompt:
    """A voice to speak with, from reference audio.

    Attributes:
        speaker: The speaker embedding, float32, shape [hidden].
        codes: The reference's frames, int64, shape [frames, codebooks]; None: only the embedding
            is used.
        text_tokens: What is said in it; empty without codes.
    """

    speaker: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int64] | None = None
    text_tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes rows for one checkpoint."""

    checkpoint: Checkpoint

    def rows(self, text: Sequence[int] | int, codes: Sequence[int] | int = NOTHING) -> Rows:
        """Rows of text tokens with codes of codebook 0; a single value goes with all."""
        values = np.broadcast_arrays(np.atleast_1d(text), np.atleast_1d(codes))
        cloned = self.checkpoint.variant is Variant.BASE
        width = self.checkpoint.hidden_size if cloned else 0
        made = np.full((len(values[0]), row_width(self.checkpoint.codebooks, width)), NOTHING)
        made[:, 1 + self.checkpoint.codebooks :] = 0
        made[:, 0], made[:, 1] = values
        return made.astype(np.int32)

    def prefix(
        self,
        role: Sequence[int],
        instructions: Sequence[int],
        language: int | None,
        speaker: int | VoicePrompt | None,
    ) -> Rows:
        """What stands before the text: instructions, role, language and speaker.

        Args:
            role: Tokens that open the assistant's turn.
            instructions: Tokens of the user's turn; may be empty.
            language: The language's codec token; None lets the model choose.
            speaker: The speaker's codec token, or the voice of reference audio.
        """
        text, codec = self.checkpoint.text, self.checkpoint.codec
        tags = [codec.nothink, codec.think_begin, codec.think_end]
        if language is not None:
            tags = [codec.think, codec.think_begin, language, codec.think_end]
        parts = [self.rows([*instructions, *role]), self.rows(text.pad, tags)]
        if isinstance(speaker, VoicePrompt):
            row = self.rows(text.pad)
            row[0, 1 + self.checkpoint.codebooks :] = speaker.speaker.view(np.int32)
            parts.append(row)
        elif speaker is not None:
            parts.append(self.rows(text.pad, speaker))
        return np.concatenate([*parts, self.rows(text.begin, codec.pad)])

    def reference_frames(self, voice: VoicePrompt, text: Sequence[int]) -> Rows:
        """The reference's frames behind the codec's begin token, with text tokens beside them."""
        made = self.rows(text, self.checkpoint.codec.begin)
        if voice.codes is not None:
            made[1:, 1 : 1 + self.checkpoint.codebooks] = voice.codes
        return made

    def first(self, prompt: Rows) -> FeedRows:
        """A request's first payload."""
        padding = Padding(self.rows(self.checkpoint.text.pad)[0])
        return FeedRows(prompt, prompt_rows=len(prompt), padding=padding)


@dataclass(slots=True)
class TextTrack:
    """Turns the text tokens of one request into rows as they come.

    Attributes:
        maker: Makes the rows.
        prefix: What stands before the text.
        voice: The voice of reference audio, if its frames are to be continued.
        whole: Read the whole text before the first step.
    """

    maker: RowMaker
    prefix: Rows
    voice: VoicePrompt | None
    whole: bool
    _begun: bool = False
    _pending: list[int] | None = None

    def take(self, tokens: Sequence[int], closed: bool) -> FeedRows | None:
        """Takes text tokens and gives the rows that are certain now; None: none are.

        Args:
            tokens: Text tokens behind those that came before.
            closed: No more come; the end token follows them. Must be said exactly once.
        """
        pending = [*(self._pending or ()), *tokens]
        self._pending = pending
        if not self._begun and closed and not pending:
            return None
        if closed:
            pending.append(self.maker.checkpoint.text.end)
        if self._begun:
            self._pending = []
            return FeedRows(self.maker.rows(pending)) if pending else None
        first = self._first(pending, closed)
        self._begun = first is not None
        return first

    def _first(self, pending: list[int], closed: bool) -> FeedRows | None:
        """The prompt and what follows it; None while it is not certain."""
        continues = self.voice is not None and self.voice.codes is not None
        if (self.whole and not closed) or not pending:
            return None
        if self.whole:
            return self._whole_text(pending)
        if continues:
            return self._beside_the_reference(pending, closed)
        begin = self.maker.checkpoint.codec.begin
        return self._begin(self.maker.rows(pending[:1], begin), pending[1:])

    def _begin(self, rows: Rows, following: list[int]) -> FeedRows:
        first = self.maker.first(np.concatenate([self.prefix, rows]))
        self._pending = []
        if not following:
            return first
        values = np.concatenate([first.values, self.maker.rows(following)])
        return FeedRows(values, prompt_rows=first.prompt_rows, padding=first.padding)

    def _whole_text(self, text: list[int]) -> FeedRows:
        """All text beside the codec's padding; then the reference's frames, or the begin."""
        tokens = self.maker.checkpoint
        spoken = [*(self.voice.text_tokens if self.voice else ()), *text]
        read = self.maker.rows(spoken, tokens.codec.pad)
        if self.voice is not None and self.voice.codes is not None:
            padding = [tokens.text.pad] * (1 + len(self.voice.codes))
            begin = self.maker.reference_frames(self.voice, padding)
        else:
            begin = self.maker.rows(tokens.text.pad, tokens.codec.begin)
        return self._begin(np.concatenate([read, begin]), [])

    def _beside_the_reference(self, pending: list[int], closed: bool) -> FeedRows | None:
        """The reference's text and the new one beside its frames, both from their beginning."""
        voice = self.voice
        if voice is None or voice.codes is None:
            raise ValueError("There is no reference to continue.")
        spoken = [*voice.text_tokens, *pending]
        frames = 1 + len(voice.codes)
        if len(spoken) < frames and not closed:
            return None
        beside = spoken[:frames]
        beside += [self.maker.checkpoint.text.pad] * (frames - len(beside))
        return self._begin(self.maker.reference_frames(voice, beside), spoken[frames:])
