"""Writes the files that pin every package, `constraints/cpu.txt` and `constraints/cuda.txt`.

To move to newer packages: change the versions in `pyproject.toml`, then make the two files anew.

For the CPU, install into a fresh environment without constraints and write down what it holds (of
that, only what Antiphon and its extras need). The repair comes after that, since it removes a
package that is to be pinned all the same. Then try it: `make test`.

    .venv/bin/python -m pip install --editable '.[cpu,dev,recipes]'
    .venv/bin/python scripts/write_constraints.py installed cpu dev recipes > constraints/cpu.txt
    .venv/bin/python scripts/repair_environment.py

For CUDA, let pip resolve without installing, which needs no GPU and fetches little:

    .venv/bin/python -m pip install --dry-run --ignore-installed --quiet --report report.json \
        '.[cuda,dev,recipes]'
    .venv/bin/python scripts/write_constraints.py resolved report.json > constraints/cuda.txt
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "antiphon"

HEADER = (
    "# Every package of a working environment, pinned.\n"
    "# Made by scripts/write_constraints.py, which says how; not edited by hand.\n"
)


def installed_versions(project: str, extras: set[str]) -> dict[str, str]:
    """The packages that an installed project needs, with the versions that are installed."""
    versions: dict[str, str] = {}
    visited: set[tuple[str, frozenset[str]]] = set()
    waiting = [(project, frozenset(extras))]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in visited:
            continue
        visited.add((name, wanted))
        try:
            found = distribution(name)
        except PackageNotFoundError:
            print(f"left out, since it is not installed: {name}", file=sys.stderr)
            continue
        versions[name] = found.version
        for text in found.requires or []:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in {"", *wanted}):
                needed = canonicalize_name(requirement.name)
                waiting.append((needed, frozenset(requirement.extras)))
    versions.pop(project, None)
    return versions


def resolved_versions(report: Path) -> dict[str, str]:
    """The packages in a report that `pip install --report` wrote."""
    items = [item["metadata"] for item in json.loads(report.read_text("utf-8"))["install"]]
    versions = {canonicalize_name(item["name"]): item["version"] for item in items}
    versions.pop(canonicalize_name(PROJECT), None)
    return {str(name): version for name, version in versions.items()}


def main() -> int:
    """Prints the constraints."""
    parser = argparse.ArgumentParser(description="Print constraints that pin every package.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("installed").add_argument("extras", nargs="+")
    kinds.add_parser("resolved").add_argument("report", type=Path)
    options = parser.parse_args()
    if options.kind == "installed":
        versions = installed_versions(PROJECT, set(options.extras))
    else:
        versions = resolved_versions(options.report)
    lines = [f"{name}=={version}\n" for name, version in sorted(versions.items())]
    sys.stdout.write(HEADER + "".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
