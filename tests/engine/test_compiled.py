"""A model that cannot be compiled is served all the same, and that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.compiled import CompileJob, compile_ahead_of, compile_stage
from engine.deploy_config import load_deploy_config
from pipelines.lark.pipeline import PIPELINE


def test_what_could_not_be_compiled_is_said_and_not_tried_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(tmp_path / "cache"))
    model = tmp_path / "model"
    model.mkdir()
    config = {"architectures": ["NothingThatIsRegistered"], "model_type": "llama"}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    deploy = load_deploy_config(PIPELINE.deploy, [stage.name for stage in PIPELINE.stages])
    job = CompileJob(PIPELINE.name, "talker", model, deploy.stage("talker"))
    with pytest.raises(Exception, match="NothingThatIsRegistered"):
        compile_stage(job)
    said: list[str] = []
    models = {stage.name: model for stage in PIPELINE.stages}
    assert compile_ahead_of(PIPELINE, models, deploy, said.append) is None
    (line,) = said
    assert line.startswith("Serving talker uncompiled and slower, since compiling it failed: ")
    assert "NothingThatIsRegistered" in line
    file = next(Path(word) for word in line.split() if word.endswith(".failed"))
    assert file.parent == tmp_path / "cache" / "antiphon"
