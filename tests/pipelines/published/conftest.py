"""The folders of the published checkpoints, written when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkpoints.published_folders import Shapes
from tests.pipelines.published.checkpoints import Published

Folders = Callable[[Published], tuple[Path, Shapes]]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("published")
    written: dict[str, tuple[Path, Shapes]] = {}

    def folder(checkpoint: Published) -> tuple[Path, Shapes]:
        if checkpoint.name not in written:
            path = root / checkpoint.name
            path.mkdir()
            written[checkpoint.name] = path, checkpoint.write(path)
        return written[checkpoint.name]

    return folder
