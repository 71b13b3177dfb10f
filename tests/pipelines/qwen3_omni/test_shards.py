"""Each stage opens the shards with its own weights, and reads no others of them."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine import ConfigurationError, part_loader
from engine.deploy_config import StageDeployment
from engine.weight_files import INDEX, weight_files
from pipelines.qwen3_omni.pipeline import build_code2wav, build_talker, build_thinker
from pipelines.qwen3_omni.talker import THINKER_EMBEDDING

BUILDERS = {"thinker.": build_thinker, "talker.": build_talker, "code2wav.": build_code2wav}
DEPLOYMENT = StageDeployment(device="cpu", max_requests=2, max_steps=256, compile="never")


@pytest.fixture
def folder(checkpoint: Path, tmp_path: Path) -> Path:
    """The checkpoint with shards that hold one part each, but for one that all must share."""
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    shards: dict[str, dict] = defaultdict(dict)
    for path in sorted(copy.glob("*.safetensors")):
        for name, values in load_file(path).items():
            shared = name in (THINKER_EMBEDDING, "thinker.lm_head.weight")
            shards["shared" if shared else name.partition(".")[0]][name] = values
        path.unlink()
    places = {}
    for part, weights in shards.items():
        save_file(weights, copy / f"{part}.safetensors", metadata={"format": "pt"})
        places |= dict.fromkeys(weights, f"{part}.safetensors")
    (copy / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return copy


@pytest.mark.parametrize("part", BUILDERS)
def test_a_stage_loads_without_the_shards_of_others(folder: Path, part: str) -> None:
    """And not without its own."""
    own = {path.name for path in weight_files(folder, (part,))}
    needed = own | ({"shared.safetensors"} if part == "talker." else set())
    for path in folder.glob("*.safetensors"):
        if path.name not in needed:
            path.unlink()
    BUILDERS[part](folder, DEPLOYMENT).close()
    (folder / f"{part}safetensors").unlink()
    with pytest.raises(ConfigurationError, match=f"names {part}safetensors"):
        BUILDERS[part](folder, DEPLOYMENT)


def test_the_talker_reads_one_of_the_thinkers_weights(folder: Path) -> None:
    """Not everything that is in the same shard: that would be gigabytes of a published one."""
    read: list[str] = []

    class Watched:
        """A file that notes which of its weights are read."""

        def __init__(self, path: Path, framework: str) -> None:
            self.file = safe_open(path, framework=framework)

        def __enter__(self) -> Watched:
            self.opened = self.file.__enter__()
            return self

        def __exit__(self, *raised: object) -> None:
            self.file.__exit__(*raised)

        def keys(self) -> Iterator[str]:
            return iter(self.opened.keys())

        def get_tensor(self, name: str) -> object:
            read.append(name)
            return self.opened.get_tensor(name)

    with mock.patch.object(part_loader, "safe_open", Watched):
        build_talker(folder, DEPLOYMENT).close()
    others = [name for name in read if not name.startswith("talker.")]
    assert others == [THINKER_EMBEDDING]
    talkers = set(load_file(folder / "talker.safetensors"))
    assert set(read) == talkers | {THINKER_EMBEDDING}
    assert len(read) == len(set(read))
