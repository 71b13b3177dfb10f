"""Speech to text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import Segment as WhisperSegment

from app.audio.pcm import FloatSamples
from app.ear import SAMPLE_RATE
from app.ear.findings import NO_HINTS, Hints, base_language

LONGEST_QUICK = 25 * SAMPLE_RATE
"""Samples up to which `quick` hears all of a sound."""

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
        language: The two-letter code of what is spoken.
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
    language: str
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
    def languages(self) -> frozenset[str]:
        """The codes of the languages that it knows."""
        return frozenset(self._model.supported_languages)

    def quick(self, sound: FloatSamples, hints: Hints = NO_HINTS) -> str:
        """What is said in a turn of up to LONGEST_QUICK samples, as fast as it goes.

        The model was made for windows of 30 s, most of which would be silence here. It hears a
        window of the turn's own length as well, in a fifth of the time; where it does not, the
        transcript goes round in circles and is made again from a whole window.
        """
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
            # CTranslate2 stops at half of this, or behind the prompt's tokens if that is sooner.
            max_length=max(2 * most, most + len(prompt)),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        tokens = result.sequences_ids[0]
        # Whisper's own rule for silence: it doubts both that somebody speaks and its transcript.
        if result.no_speech_prob > 0.6 and result.scores[0] < -1.0:
            return "", True
        return tokenizer.decode(tokens).strip(), len(tokens) < most

    def _tokenizer(self, encoded: ctranslate2.StorageView, hint: str | None) -> Tokenizer:
        model = self._model
        language = self._language(hint)
        if language is None:
            token, _ = model.model.detect_language(encoded)[0][0]
            language = token.strip("<|>")
        multilingual = model.model.is_multilingual
        return Tokenizer(model.hf_tokenizer, multilingual, task="transcribe", language=language)

    def _language(self, hint: str | None) -> str | None:
        """The language to write down; None where it has to be found out."""
        if not self._model.model.is_multilingual:
            return "en"
        language = None if hint is None else base_language(hint)
        return language if language in self.languages else None

    def segments(
        self,
        sound: FloatSamples,
        *,
        start: float = 0.0,
        language: str | None = None,
        prompt: str | None = None,
        temperature: float = 0.0,
        words: bool = False,
    ) -> Iterator[Segment]:
        """What is said in a stretch of a recording, piece by piece as it is found out.

        Args:
            sound: The stretch. Before the first piece, the features of all of it are computed.
            start: When it begins, in seconds.
            language: A two-letter code; None finds it out, as does one it does not know.
            prompt: Words that are likely to come, or the text before.
            temperature: Of the sampling.
            words: Whether to find each word's time.
        """
        found, about = self._model.transcribe(
            sound,
            language=self._language(language),
            initial_prompt=prompt,
            temperature=[temperature] if temperature else [0.0, 0.4, 0.8],
            beam_size=1,
            condition_on_previous_text=False,
            word_timestamps=words,
            vad_filter=False,
        )
        latest = len(sound) / SAMPLE_RATE
        for segment in found:
            yield _segment(segment, start, latest, about.language)


def _segment(found: WhisperSegment, offset: float, latest: float, language: str) -> Segment:
    """A segment of a stretch that begins at `offset` and lasts `latest`, in seconds."""
    return Segment(
        text=found.text,
        start=offset + found.start,
        end=offset + min(found.end, latest),
        tokens=tuple(found.tokens),
        temperature=found.temperature or 0.0,
        average_log_probability=found.avg_logprob,
        compression_ratio=found.compression_ratio,
        no_speech_probability=found.no_speech_prob,
        language=language,
        words=tuple(
            HeardWord(word.word, offset + word.start, offset + word.end)
            for word in found.words or ()
        ),
    )
