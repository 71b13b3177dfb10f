"""Judge sounds in files: naturalness, and whether the speaker is the teacher's.

    python -m recipes.lark.judge_files FOLDER

The folder holds `sentences.tsv` (columns id, kind and text) and one `<id>.wav` for each sentence.
The teacher speaks the same sentences into FOLDER/teacher. FOLDER/judged.json then says for each id
the DistillMOS of the sound (`naturalness`) and of the teacher's (`reference`), and the similarity
of the two speakers, null where a sound is too short for it. `antiphon eval --naturalness` uses it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from tqdm import tqdm

from app.evaluation.sentences import read_sentences
from recipes.lark.evaluate import TRIMMED, FloatArray, read_wave, speak_all
from recipes.lark.judges import RATE, NaturalnessJudge, SpeakerEncoder, resampled
from recipes.lark.teacher import SAMPLE_RATE, FeatureTeacher

SHORTEST = 1.6
"""Seconds below which the speaker encoder sees mostly padding."""


def judge_files(folder: Path) -> dict[str, dict[str, float | None]]:
    """Return the judgements of each sentence's sound."""
    items, teacher = read_sentences(folder / "sentences.tsv"), FeatureTeacher()

    def original(utterances: list[list[int]]) -> FloatArray:
        return np.concatenate([teacher.speak(ids) for ids in utterances])

    speak_all(items, folder / "teacher", teacher, original)
    naturalness, speaker = NaturalnessJudge(), SpeakerEncoder().eval()
    lead = np.zeros(int(TRIMMED * SAMPLE_RATE), np.float32)
    found: dict[str, dict[str, float | None]] = {}
    for item in tqdm(items, desc="judging", mininterval=5):
        sound = np.concatenate([lead, read_wave(folder / f"{item.name}.wav")])
        ours = resampled(sound, SAMPLE_RATE)
        theirs = resampled(read_wave(folder / "teacher" / f"{item.name}.wav"), SAMPLE_RATE)
        alike = None
        if len(ours) > SHORTEST * RATE:
            alike = float(speaker.embed(ours) @ speaker.embed(theirs))
        found[item.name] = {
            "naturalness": naturalness(ours),
            "reference": naturalness(theirs),
            "similarity": alike,
        }
    return found


def main() -> None:
    """Parse the command line and write what the judges say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    found = judge_files(folder)
    (folder / "judged.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
