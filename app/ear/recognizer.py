"""Speech to text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE
from app.ear.findings import NO_HINTS, Hints

LONGEST_QUICK = 25 * SAMPLE_RATE
"""Samples up to which one look at the sound is enough."""

_HOP = 160
"""Samples of one frame of features."""

_PADDING = 100
"""Frames of silence behind the sound, so that the last word is heard to be over."""

_TOKENS_PER_SECOND = 8
"""More than anybody says; a transcript that would be longer goes round in circles."""

_SPARE_TOKENS = 12


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A word and when it is said, in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech, with what the model thinks of its own transcript.

    Attributes:
        text: What is said.
        start: Seconds.
        end: Seconds.
        tokens: The text as the model's tokens.
        temperature: What it was sampled with.
        average_log_probability: Of the tokens.
        compression_ratio: High where the text repeats itself.
        no_speech_probability: That nobody speaks.
        words: The words, if their times were asked for.
    """

    text: str
    start: float
    end: float
    tokens: tuple[int, ...]
    temperature: float
    average_log_probability: float
    compression_ratio: float
    no_speech_probability: float
    words: tuple[HeardWord, ...] = ()


class Recognizer:
    """A loaded Whisper model; one thread at a time uses it."""

    def __init__(self, folder: Path) -> None:
        """Loads a model in CTranslate2's form, with 8-bit weights, on one processor core."""
        self._model = WhisperModel(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=1,
            num_workers=1,
            local_files_only=True,
        )

    @property
    def multilingual(self) -> bool:
        """Whether it knows more than English."""
        return self._model.model.is_multilingual

    def quick(self, sound: FloatSamples, hints: Hints = NO_HINTS) -> str:
        """What is said in a turn, as fast as it goes.

        The model was made for windows of 30 s, most of which would be silence here. It hears a
        window of the turn's own length as well, in a fifth of the time; where it does not, the
        transcript goes round in circles and is made again from a whole window.
        """
        if len(sound) > LONGEST_QUICK:
            pieces = self.segments(sound, language=hints.language, prompt=hints.prompt or None)
            return "".join(piece.text for piece in pieces).strip()
        extractor = self._model.feature_extractor
        frames = min(len(sound) // _HOP + _PADDING, extractor.nb_max_frames)
        text, whole = self._decode(sound, frames, hints)
        if not whole:
            text, _ = self._decode(sound, extractor.nb_max_frames, hints)
        return text

    def _decode(self, sound: FloatSamples, frames: int, hints: Hints) -> tuple[str, bool]:
        """The text, and whether it came to its end within what can be said in that time."""
        padded = np.pad(sound, (0, max(0, frames * _HOP - len(sound))))
        features = self._model.feature_extractor(padded, padding=_HOP)[:, :frames]
        encoded = self._model.encode(np.ascontiguousarray(features, dtype=np.float32))
        tokenizer = self._tokenizer(encoded, hints.language)
        prompt = self._model.get_prompt(
            tokenizer, [], without_timestamps=True, hotwords=hints.prompt or None
        )
        seconds = len(sound) / SAMPLE_RATE
        most = int(_SPARE_TOKENS + _TOKENS_PER_SECOND * seconds)
        result = self._model.model.generate(
            encoded,
            [prompt],
            beam_size=1,
            max_length=most + len(prompt),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        tokens = result.sequences_ids[0]
        # Whisper's own rule for silence: it doubts both that somebody speaks and its transcript.
        if result.no_speech_prob > 0.6 and result.scores[0] < -1.0:
            return "", True
        return tokenizer.decode(tokens).strip(), len(tokens) < most

    def _tokenizer(self, encoded: ctranslate2.StorageView, language: str | None) -> Tokenizer:
        model = self._model
        if not self.multilingual:
            language = "en"
        elif language is None:
            token, _ = model.model.detect_language(encoded)[0][0]
            language = token.strip("<|>")
        return Tokenizer(
            model.hf_tokenizer, self.multilingual, task="transcribe", language=language
        )

    def segments(
        self,
        sound: FloatSamples,
        *,
        language: str | None = None,
        prompt: str | None = None,
        temperature: float = 0.0,
        words: bool = False,
    ) -> Iterator[Segment]:
        """What is said in a recording of any length, piece by piece as it is found out.

        Args:
            sound: The recording.
            language: A two-letter code; None finds it out.
            prompt: Words that are likely to come, or the text before.
            temperature: Of the sampling.
            words: Whether to find each word's time.
        """
        found, _ = self._model.transcribe(
            sound,
            language=language if self.multilingual else "en",
            initial_prompt=prompt,
            temperature=[temperature] if temperature else [0.0, 0.4, 0.8],
            beam_size=1,
            condition_on_previous_text=False,
            word_timestamps=words,
            vad_filter=False,
        )
        for segment in found:
            yield Segment(
                text=segment.text,
                start=segment.start,
                end=min(segment.end, len(sound) / SAMPLE_RATE),
                tokens=tuple(segment.tokens),
                temperature=segment.temperature or 0.0,
                average_log_probability=segment.avg_logprob,
                compression_ratio=segment.compression_ratio,
                no_speech_probability=segment.no_speech_prob,
                words=tuple(
                    HeardWord(word.word, word.start, word.end) for word in segment.words or ()
                ),
            )
