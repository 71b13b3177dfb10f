"""The adapters of `lark`: text to phoneme rows, codes to decoder frames (pure conversions)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from engine.adapter import FeedRows, GenerationInput, StepOutput
from engine.chunk import TextPayload, WordTiming
from pipelines.lark.codec import FRAME_RATE, Codec, CodecState
from pipelines.lark.stretch import split_speed
from pipelines.lark.text import Phonemizer, Phrase, SpeechReader, Word


@dataclass(frozen=True, slots=True)
class Tag:
    """What travels with the step of a phoneme that belongs to a written word.

    Attributes:
        word: The word.
        last: Whether this is its last phoneme.
    """

    word: Word
    last: bool


class TextToPhonemes:
    """The request's text as conditioning rows of the Talker.

    A row holds the voice, a phoneme and the phonemes that follow it. The look-ahead ends with the
    sentence: it never reaches into the next one, so that a row is the same whether the next
    sentence is there already or not.
    """

    def __init__(self, phonemizer: Phonemizer, voice_index: int, lookahead: int) -> None:
        """Makes an adapter without text."""
        self._reader = SpeechReader(phonemizer)
        self._voice_index = voice_index
        self._lookahead = lookahead
        self._ids: deque[int] = deque()
        self._tags: deque[Tag | None] = deque()
        self._sentence_ended = False

    def push(self, payload: object) -> None:
        """Adds text; reading is left to `pull`. What a Thinker sends beside text is not spoken."""
        if not isinstance(payload, TextPayload):
            return
        if payload.text:
            self._reader.push(payload.text)
        if payload.flush:
            self._reader.flush()

    def close(self) -> None:
        """Ends the text."""
        self._reader.close()

    def hurry(self) -> None:
        """Ends the sentence with what has come, as a speaker who must think does."""
        self._reader.flush()

    def pull(self) -> FeedRows | None:
        """The rows of the next phrase whose reading is certain."""
        while (phrase := self._reader.read()) is not None:
            self._add(phrase)
            rows = self._ready_rows(phrase.ends_sentence)
            if rows is not None:
                return rows
        if self._reader.finished and self._ids:
            return self._ready_rows(ends=True)
        return None

    @property
    def finished(self) -> bool:
        """Whether all text was read and every row given."""
        return self._reader.finished and not self._ids

    def _add(self, phrase: Phrase) -> None:
        self._ids.extend(phrase.ids)
        last = {word: position for position, word in enumerate(phrase.word_of)}
        self._tags.extend(
            Tag(phrase.words[word], position == last[word]) if word >= 0 else None
            for position, word in enumerate(phrase.word_of)
        )

    def _ready_rows(self, ends: bool) -> FeedRows | None:
        """Rows whose look-ahead is filled; all that are left, where a sentence ends."""
        count = len(self._ids) if ends else len(self._ids) - self._lookahead
        if count <= 0:
            return None
        ids = np.fromiter(self._ids, np.int64, len(self._ids))
        padded = np.concatenate([ids, np.zeros(self._lookahead, np.int64)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, self._lookahead + 1)
        values = np.empty((count, self._lookahead + 2), np.int64)
        values[:, 0] = self._voice_index
        values[:, 1:] = windows[:count]
        tags = tuple(self._tags.popleft() for _ in range(count))
        for _ in range(count):
            self._ids.popleft()
        return FeedRows(values, tags)


SHORTEST_WORD: Final = 1
"""Duration class that a word of one phoneme has at least: 50 ms, so that "a" is heard."""


class CodesToFrames:
    """The Talker's codes as frames of Code2Wav, with the times of the written words."""

    def __init__(self, codec: Codec, speed: float) -> None:
        """Makes an adapter at the beginning of a response."""
        self._codec = codec
        own, shortening = split_speed(speed)
        self._state = CodecState(own)
        self._frames_a_second = FRAME_RATE * shortening
        self._inputs: deque[GenerationInput] = deque()
        self._frames = 0
        self._word: Word | None = None
        self._word_start = 0
        self._closed = False

    def push(self, payload: StepOutput) -> None:
        """Converts one phoneme."""
        codes = payload.codes.copy()
        if payload.tag is not None and payload.tag.last and self._word is None:
            codes[0] = max(codes[0], SHORTEST_WORD)
        phoneme = self._codec.features(self._state, codes[None])
        units = len(phoneme.features)
        words = self._advance(payload.tag, units)
        data = torch.from_numpy(phoneme.features)
        self._inputs.append(GenerationInput(units, data, words))

    def close(self) -> None:
        """Ends the codes."""
        self._closed = True

    def hurry(self) -> None:
        """Nothing is held back here."""

    def pull(self) -> GenerationInput | None:
        """The next phoneme's frames."""
        return self._inputs.popleft() if self._inputs else None

    @property
    def finished(self) -> bool:
        """Whether the codes ended and every frame was given."""
        return self._closed and not self._inputs

    def _advance(self, tag: Tag | None, frames: int) -> tuple[WordTiming, ...]:
        """Takes one phoneme into the word times; gives the word that ends with it."""
        if tag is not None and self._word is None:
            self._word = tag.word
            self._word_start = self._frames
        self._frames += frames
        return self._finish_word() if tag is not None and tag.last else ()

    def _finish_word(self) -> tuple[WordTiming, ...]:
        word, self._word = self._word, None
        if word is None:
            return ()
        start, end = (count / self._frames_a_second for count in (self._word_start, self._frames))
        return (WordTiming(word.text, word.start, word.end, start, end),)
