"""Step 7: word times against the teacher's, and five minutes of text in one request.

python -m recipes.lark.stability --data build/lark --weights pipelines/lark/weights
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from app.evaluation.sentences import Sentence, read_sentences
from app.evaluation.transcriber import Transcriber
from app.evaluation.words_error import align, normalised
from app.settings import Settings
from pipelines.lark.codec import FRAME_RATE, UNIT_FRAMES, CodecState
from pipelines.lark.spectrum import HOP
from recipes.lark.corpus import EVALUATION
from recipes.lark.speak import WEIGHTS, Voice
from recipes.lark.teacher import SAMPLE_RATE, FeatureTeacher

SPACE = 16
"""Phoneme id of the space between words."""

LONG_SECONDS = 300.0


def word_starts(ids: list[int], frames: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return when each word begins, in seconds after the leading silence, [words].

    Args:
        ids: the phonemes, [L].
        frames: how many frames each of them lasts, [L].
    """
    ends = np.cumsum(frames) / FRAME_RATE
    begins = [index for index in range(1, len(ids)) if index == 1 or ids[index - 1] == SPACE]
    return ends[np.asarray(begins) - 1] - ends[0]


def timing_errors(items: list[Sentence], teacher: FeatureTeacher, voice: Voice) -> list[float]:
    """Return how far each word's start lies from the teacher's, in seconds."""
    errors: list[float] = []
    for item in tqdm(items, desc="word times", mininterval=5):
        for phonemes in teacher.phonemes(item.text):
            ids = teacher.ids(phonemes)
            lengths = UNIT_FRAMES * teacher.features(ids).durations.astype(np.int64)
            spoken = voice.code2wav.codec.features(CodecState(), voice.codes([ids])).frames
            theirs, ours = word_starts(ids, lengths), word_starts(ids, spoken)
            errors += np.abs(ours - theirs).tolist()
    return errors


def long_request(
    items: list[Sentence], teacher: FeatureTeacher, voice: Voice, transcribe: Transcriber
) -> list[dict[str, float]]:
    """Speak sentences in one request until it is long enough; return the figures by minute."""
    utterances, spoken = [], []
    for item in items:
        ids = [teacher.ids(phonemes) for phonemes in teacher.phonemes(item.text)]
        utterances.append([phoneme for sentence in ids for phoneme in sentence])
        spoken.append(item)
        if sum(map(len, utterances)) > LONG_SECONDS * 15:
            break
    codes = voice.codes(utterances)
    frames = voice.code2wav.codec.features(CodecState(), codes).frames
    samples = voice.samples(codes)
    lengths = [len(utterance) for utterance in utterances]
    ends = np.cumsum(frames)[np.cumsum(lengths) - 1] * HOP
    minutes: dict[int, list[int]] = {}
    start = 0
    for item, end in zip(tqdm(spoken, desc="long request", mininterval=5), ends, strict=True):
        heard = transcribe(samples[start:end], SAMPLE_RATE)
        found = align(normalised(item.text), normalised(heard))
        counts = minutes.setdefault(int(start / SAMPLE_RATE // 60), [0, 0, 0, 0])
        for index, value in enumerate((found.words, found.errors, found.deleted, end - start)):
            counts[index] += int(value)
        start = end
    return [
        {
            "minute": minute + 1,
            "WER %": round(100 * errors / words, 2),
            "deleted": deleted,
            "words a second": round(words * SAMPLE_RATE / length, 2),
        }
        for minute, (words, errors, deleted, length) in sorted(minutes.items())
    ]


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    items, teacher, voice = read_sentences(EVALUATION), FeatureTeacher(), Voice(options.weights)
    errors = np.asarray(timing_errors(items, teacher, voice))
    milliseconds = {
        "median": round(float(1000 * np.median(errors)), 1),
        "95th percentile": round(float(1000 * np.percentile(errors, 95)), 1),
    }
    print(json.dumps({"word start, ms from the teacher's": milliseconds}))
    order = np.random.default_rng(1).permutation(len(items))
    mixed = [items[index] for index in order]
    transcribe = Transcriber.installed(Settings().cache_folder, torch.get_num_threads())
    for row in long_request(mixed, teacher, voice, transcribe):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
