"""All steps in order, each going on from where it stopped.

python -m recipes.lark --data build/lark                      # hours on two cores
python -m recipes.lark --data build/lark-short --short        # minutes, to see that all works
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from pipelines.lark.decoder import DecoderConfig
from recipes.lark import code2wav, codec, export, features, talker


def run(data: Path, weights: Path, minutes: float, short: bool) -> None:
    """Make features, codec, Talker and decoder below `data` and export them to `weights`.

    Args:
        data: folder of everything in between.
        weights: folder of the result.
        minutes: of training, for the Talker and again for the decoder.
        short: whether to use a small corpus.
    """
    counts = features.SHORT_COUNTS if short else features.COUNTS
    features.run(data, os.cpu_count() or 1, counts)
    codec.run(data, sample=300_000, rounds=3 if short else 20)
    speaking = talker.Settings(minutes)
    decoding = code2wav.Settings(minutes)
    if short:
        speaking = replace(speaking, rows=1, warm_up=10)
        decoding = replace(decoding, rows=1, length=256, warm_up=10)
    talker.Trainer(data, speaking).run()
    code2wav.Trainer(data, decoding, DecoderConfig()).run()
    export.run(data, weights)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("build/lark"))
    parser.add_argument("--weights", type=Path, default=Path("build/lark/weights"))
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    minutes = options.minutes or (1.0 if options.short else 90.0)
    run(options.data, options.weights, minutes, options.short)


if __name__ == "__main__":
    main()
