"""Writes sizes and digests of the weights that ship with Antiphon into the catalogue.

Run it after new weights were put into `pipelines/*/weights`, and commit both together:

    .venv/bin/python scripts/pin_weights.py

Only files of sources that are folders are touched; everything else in the catalogue, comments
included, stays as it is.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import yaml

CATALOGUE = Path(__file__).resolve().parent.parent / "pipelines" / "catalogue.yaml"


def pinned(text: str, folder: Path) -> str:
    """The text of a catalogue with the files below `folder` pinned.

    Raises:
        ValueError: A file's entry was not found; each must be one line, `name: {...}`.
    """
    for name, model in yaml.safe_load(text)["models"].items():
        places = [source["folder"] for source in model["sources"] if "folder" in source]
        if len(places) != len(model["sources"]):
            continue  # Files that come from elsewhere are pinned by hand, once and for all.
        for file in model["files"]:
            content = (folder / places[0] / file).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            entry = f"{file}: {{size: {len(content)}, sha256: {digest}}}"
            # The first line with the file's name after the line with the model's.
            pattern = rf"(^  {re.escape(name)}:$.*?^ +){re.escape(file)}: \{{[^}}]*\}}$"
            text, found = re.subn(pattern, rf"\g<1>{entry}", text, count=1, flags=re.M | re.S)
            if not found:
                raise ValueError(f"There is no line '{file}: {{...}}' of {name} in the catalogue.")
    return text


def main() -> int:
    """Pins the weights in the catalogue of this checkout."""
    before = CATALOGUE.read_text("utf-8")
    after = pinned(before, CATALOGUE.parent)
    CATALOGUE.write_text(after, "utf-8")
    print("The catalogue is up to date." if before == after else "The catalogue was changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
