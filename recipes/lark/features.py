"""Step 1: texts → phonemes → teacher features, in resumable shards.

    python -m recipes.lark.features --data build/lark

A shard that exists is kept, so the command can be stopped and started again.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from recipes.lark import corpus
from recipes.lark.teacher import LONGEST, FeatureTeacher, Utterance

COUNTS = {"chitchat": 13_000, "chatterbot": 1_200, "templates": 9_000, "prose": 3_000}
SHORT_COUNTS = {"chitchat": 250, "templates": 250}
SHARD = 250
"""Texts in one shard."""


def shard_path(data: Path, index: int) -> Path:
    """Return where the shard `index` is kept."""
    return data / "features" / f"{index:05d}.npz"


def _write_shard(path: Path, utterances: list[Utterance], voice: int) -> None:
    """Write utterances as concatenated arrays; the file appears only when it is whole."""
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        np.savez(
            file,
            ids=np.concatenate([u.ids for u in utterances]),
            durations=np.concatenate([u.durations for u in utterances]),
            h=np.concatenate([u.h for u in utterances]),
            f0=np.concatenate([u.f0 for u in utterances]),
            energy=np.concatenate([u.energy for u in utterances]),
            phonemes=np.asarray([len(u.ids) for u in utterances], np.int32),
            frames=np.asarray([len(u.f0) for u in utterances], np.int32),
            voice=np.asarray(voice, np.int32),
        )
    temporary.rename(path)


@functools.cache
def _teacher() -> FeatureTeacher:
    """Return the teacher of this worker process."""
    return FeatureTeacher()


def _work(task: tuple[Path, int, list[str]]) -> int:
    """Make one shard in a worker process and return its number of phonemes."""
    data, index, texts = task
    teacher = _teacher()
    utterances = []
    for text in texts:
        for phonemes in teacher.phonemes(text):
            ids = teacher.ids(phonemes)
            if 3 <= len(ids) <= LONGEST + 2:
                utterances.append(teacher.features(ids))
    _write_shard(shard_path(data, index), utterances, voice=0)
    return sum(len(u.ids) for u in utterances)


@dataclass(frozen=True)
class Features:
    """All utterances of the corpus as flat arrays with offsets.

    Attributes:
        ids: [P] phoneme ids.
        durations: [P] units of 25 ms.
        h: [P, 128].
        f0: [F] hertz at 80 Hz.
        energy: [F] at 80 Hz.
        phoneme_offsets: [U + 1] where each utterance begins among the phonemes.
        frame_offsets: [U + 1] where each utterance begins among the frames.
    """

    ids: npt.NDArray[np.int16]
    durations: npt.NDArray[np.int16]
    h: npt.NDArray[np.float16]
    f0: npt.NDArray[np.float16]
    energy: npt.NDArray[np.float16]
    phoneme_offsets: npt.NDArray[np.int64]
    frame_offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.phoneme_offsets) - 1


def load(data: Path) -> Features:
    """Load every finished shard, in order."""
    shards = [np.load(path) for path in sorted((data / "features").glob("*.npz"))]
    if not shards:
        raise FileNotFoundError(f"no feature shards below {data / 'features'}")

    def offsets(name: str) -> npt.NDArray[np.int64]:
        lengths = np.concatenate([shard[name] for shard in shards]).astype(np.int64)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def joined(name: str) -> npt.NDArray[Any]:
        return np.concatenate([shard[name] for shard in shards])

    return Features(
        ids=joined("ids"),
        durations=joined("durations"),
        h=joined("h"),
        f0=joined("f0"),
        energy=joined("energy"),
        phoneme_offsets=offsets("phonemes"),
        frame_offsets=offsets("frames"),
    )


def run(data: Path, workers: int, counts: dict[str, int]) -> None:
    """Make every shard that is not there yet."""
    sentences = corpus.build(counts, data / "prose")
    (data / "features").mkdir(parents=True, exist_ok=True)
    tasks = []
    for index, start in enumerate(range(0, len(sentences), SHARD)):
        if not shard_path(data, index).exists():
            tasks.append((data, index, [s.text for s in sentences[start : start + SHARD]]))
    phonemes = 0
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        progress = tqdm(
            pool.imap_unordered(_work, tasks), total=len(tasks), unit="shard", mininterval=5
        )
        for count in progress:
            phonemes += count
            progress.set_postfix(phonemes=phonemes)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--short", action="store_true", help="a few hundred sentences, for tests")
    options = parser.parse_args()
    run(options.data, options.workers, SHORT_COUNTS if options.short else COUNTS)


if __name__ == "__main__":
    main()
