"""Step 6: judge exported weights on the evaluation sentences, the teacher beside them.

    python -m recipes.lark.evaluate --data build/lark --weights pipelines/lark/weights

Speaks every sentence free-running in plain torch, then counts Whisper's word errors and averages
DistillMOS and the speaker similarity. Results of a sentence are kept, so the command can go on.
"""

from __future__ import annotations

import argparse
import json
import wave
from collections import defaultdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from app.evaluation.sentences import Sentence, read_sentences
from app.evaluation.transcriber import Transcriber
from app.evaluation.words_error import align, normalised
from app.settings import Settings
from recipes.lark.corpus import EVALUATION
from recipes.lark.judges import RATE, NaturalnessJudge, SpeakerEncoder, resampled
from recipes.lark.speak import Voice, write_wave
from recipes.lark.teacher import SAMPLE_RATE, FeatureTeacher

FloatArray = npt.NDArray[np.float32]

TRIMMED = 0.3
"""Seconds of leading silence that `lark` does without, compared with the teacher."""


class Speaker(Protocol):
    """Whatever turns sentences, given as phoneme ids, into sound at 24 kHz."""

    def __call__(self, utterances: list[list[int]]) -> FloatArray:
        """Return the sound of one text."""


def read_wave(path: Path) -> FloatArray:
    """Return mono 16-bit samples as floats."""
    with wave.open(str(path), "rb") as file:
        raw = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return (raw / 32768).astype(np.float32)


def speak_all(
    items: list[Sentence], folder: Path, teacher: FeatureTeacher, speaker: Speaker
) -> None:
    """Write one sound file for each sentence that has none."""
    folder.mkdir(parents=True, exist_ok=True)
    for item in tqdm(items, desc=folder.name, mininterval=5):
        path = folder / f"{item.name}.wav"
        if not path.exists():
            write_wave(path, speaker([teacher.ids(p) for p in teacher.phonemes(item.text)]))


def judge(
    items: list[Sentence], folder: Path, judges: dict[str, Any], silence: float
) -> dict[str, dict[str, Any]]:
    """Return transcript, naturalness and speaker vector of each sentence; kept in a file.

    Args:
        items: the sentences.
        folder: of their sounds.
        judges: "transcribe", "naturalness" and "speaker".
        silence: seconds put before each sound. DistillMOS takes a sound without a beginning for
            a worse one, by 0.1 on average, so a voice whose leading silence was trimmed gets it
            back before it is compared with one that has it.
    """
    lead = np.zeros(int(silence * SAMPLE_RATE), np.float32)
    path = folder / "judged.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for item in tqdm(items, desc=f"judging {folder.name}", mininterval=5):
        if item.name in found:
            continue
        sound = np.concatenate([lead, read_wave(folder / f"{item.name}.wav")])
        samples = resampled(sound, SAMPLE_RATE)
        found[item.name] = {
            "heard": judges["transcribe"](samples, RATE),
            "naturalness": judges["naturalness"](samples),
            "speaker": judges["speaker"].embed(samples).tolist(),
            "seconds": len(samples) / RATE,
        }
        path.write_text(json.dumps(found), encoding="utf-8")
    return found


def summary(
    items: list[Sentence], found: dict[str, dict[str, Any]], base: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the figures of one system; similarity is to `base`, over sentences above 1.6 s."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    similarity = []
    for item in items:
        result = align(normalised(item.text), normalised(found[item.name]["heard"]))
        for kind in (item.kind, "all"):
            for index, value in enumerate(
                (result.words, result.errors, result.deleted, result.inserted)
            ):
                counts[kind][index] += value
        if found[item.name]["seconds"] > 1.6:
            ours, theirs = found[item.name]["speaker"], base[item.name]["speaker"]
            similarity.append(float(np.dot(ours, theirs)))
    return {
        "WER %": round(100 * counts["all"][1] / counts["all"][0], 2),
        "deleted": counts["all"][2],
        "inserted": counts["all"][3],
        "DistillMOS": round(float(np.mean([found[item.name]["naturalness"] for item in items])), 3),
        "similarity": round(float(np.mean(similarity)), 3) if similarity else None,
        "WER % by kind": {
            kind: round(100 * errors / words, 2)
            for kind, (words, errors, *_) in sorted(counts.items())
            if kind != "all"
        },
    }


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--weights", type=Path, default=Path("pipelines/lark/weights"))
    parser.add_argument("--name", default="lark", help="folder of this system's sounds")
    parser.add_argument("--limit", type=int, default=0, help="sentences, 0 for all")
    parser.add_argument("--temperature", type=float, default=0.0)
    options = parser.parse_args()
    items, teacher = read_sentences(EVALUATION, options.limit), FeatureTeacher()
    voice = Voice(options.weights)

    def lark(utterances: list[list[int]]) -> FloatArray:
        return voice.samples(voice.codes(utterances, options.temperature))

    def original(utterances: list[list[int]]) -> FloatArray:
        return np.concatenate([teacher.speak(ids) for ids in utterances])

    root = options.data / "evaluation"
    systems: dict[str, Speaker] = {"teacher": original, options.name: lark}
    for name, speaker in systems.items():
        speak_all(items, root / name, teacher, speaker)
    judges = {
        "transcribe": Transcriber.installed(Settings().cache_folder, torch.get_num_threads()),
        "naturalness": NaturalnessJudge(),
        "speaker": SpeakerEncoder().eval(),
    }
    judged = {
        name: judge(items, root / name, judges, 0.0 if name == "teacher" else TRIMMED)
        for name in systems
    }
    for name, found in judged.items():
        print(json.dumps({"system": name, **summary(items, found, judged["teacher"])}, indent=1))


if __name__ == "__main__":
    main()
