from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vllm.model_executor.layers.quantization import (
    DEPRECATED_QUANTIZATION_METHODS,
    QUANTIZATION_METHODS,
)

from engine import ConfigurationError
from engine.deploy_config import DeployConfig, StageDeployment, load_deploy_config
from engine.pipeline_config import load_pipeline
from engine.quantization import CPU_METHODS, METHODS

STAGES = ["talker", "code2wav"]


def load(folder: Path, text: str) -> DeployConfig:
    path = folder / "deploy.yaml"
    path.write_text(text, encoding="utf-8")
    return load_deploy_config(path, STAGES)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(folder, text)
    message = str(refused.value)
    assert "deploy.yaml" in message
    return message


def test_what_is_not_named_has_its_default(tmp_path: Path) -> None:
    config = load(tmp_path, "stages: {talker: {replicas: 2}}")
    assert config.stage("talker") == StageDeployment(replicas=2)
    assert config.stage("code2wav") == StageDeployment()
    assert load(tmp_path, "") == DeployConfig()


def test_batch_sizes_of_graphs_are_read(tmp_path: Path) -> None:
    config = load(tmp_path, 'stages: {talker: {device: "cuda:1", cuda_graphs: [1, 2, 8]}}')
    assert config.stage("talker").cuda_graphs == [1, 2, 8]
    assert load(tmp_path, "").stage("talker").cuda_graphs == []


@pytest.mark.parametrize(
    ("text", "wrong", "near"),
    [
        ("admision: {}", "admision", "admission"),
        ("admission: {max_runing: 2}", "max_runing", "max_running"),
        ("stages: {talker: {max_request: 2}}", "max_request", "max_requests"),
        ("stages: {code2wav: {chunk: {firts_units: 2}}}", "firts_units", "first_units"),
        ("stages: {talker: {kv_cache_bytes: 2}}", "kv_cache_bytes", "key_value_cache_bytes"),
        ("stages: {talkr: {}}", "talkr", "talker"),
        ("stages: {code-2-wav: {}}", "code-2-wav", "code2wav"),
    ],
)
def test_an_unknown_key_is_refused_and_the_nearest_named(
    tmp_path: Path, text: str, wrong: str, near: str
) -> None:
    message = refusal(tmp_path, text)
    assert wrong in message
    assert f"did you mean {near!r}" in message


@given(st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1, max_size=12))
def test_any_unknown_key_is_refused(tmp_path_factory: pytest.TempPathFactory, key: str) -> None:
    if key in DeployConfig.model_fields:
        return
    assert "did you mean" in refusal(tmp_path_factory.mktemp("deploy"), f'"{key}": 1')


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("stages: {talker: {replicas: two}}", "stages.talker.replicas"),
        ("stages: {talker: {replicas: '2'}}", "stages.talker.replicas"),
        ("stages: {talker: {replicas: true}}", "stages.talker.replicas"),
        ("stages: {talker: {replicas: 1.5}}", "stages.talker.replicas"),
        ("stages: {talker: {replicas: 0}}", "stages.talker.replicas"),
        ("stages: {talker: {replicas: null}}", "stages.talker.replicas"),
        ("stages: {talker: {compile: 1}}", "stages.talker.compile"),
        ("stages: {talker: {dtype: float8}}", "stages.talker.dtype"),
        ("stages: {talker: {device: gpu}}", "stages.talker.device"),
        ("stages: {talker: 3}", "stages.talker"),
        ("stages: [talker]", "stages"),
        ("stages: {code2wav: {chunk: {growth: 1.0}}}", "stages.code2wav.chunk.growth"),
        ("stages: {code2wav: {chunk: {first_units: 64}}}", "stages.code2wav.chunk"),
        ("stages: {code2wav: {cuda_graphs: [1]}}", "stages.code2wav"),
        ("stages: {code2wav: {device: 'cuda:0', cuda_graphs: 1}}", "stages.code2wav.cuda_graphs"),
        (
            "stages: {code2wav: {device: 'cuda:0', cuda_graphs: [0]}}",
            "stages.code2wav.cuda_graphs.0",
        ),
        ("stages: {code2wav: {device: 'cuda:0', cuda_graphs: [2, 1]}}", "stages.code2wav"),
        ("stages: {code2wav: {device: 'cuda:0', cuda_graphs: [1, 1]}}", "stages.code2wav"),
        ("stages: {code2wav: {device: 'cuda:0', cuda_graphs: [64]}}", "stages.code2wav"),
        ("admission: {max_waiting: -1}", "admission.max_waiting"),
        ("admission: {deadline: .nan}", "admission.deadline"),
        ("[1, 2]", "the file"),
        ("just words", "the file"),
        ("0", "the file"),
        ("[]", "the file"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(tmp_path: Path, text: str, key: str) -> None:
    assert f"{key}: " in refusal(tmp_path, text)


def test_quantizations_are_those_of_vllm() -> None:
    """`online` needs more than a name, and deprecated methods are not offered."""
    known = set(QUANTIZATION_METHODS) - set(DEPRECATED_QUANTIZATION_METHODS) - {"online"}
    assert set(METHODS) == known
    assert set(CPU_METHODS) <= known


def test_a_quantization_that_vllm_or_the_processor_cannot_do_is_refused(tmp_path: Path) -> None:
    """The nearest name is told, or what there is on the device."""
    assert load(tmp_path, "stages: {talker: {quantization: gptq, device: cpu}}")
    assert load(tmp_path, "stages: {talker: {quantization: fp8, device: 'cuda:0'}}")
    message = refusal(tmp_path, "stages: {talker: {quantization: gtpq}}")
    assert "stages.talker" in message
    assert "did you mean 'gptq'" in message
    message = refusal(tmp_path, "stages: {talker: {quantization: fp8, device: cpu}}")
    assert "'fp8' does not run on the stage's device 'cpu'" in message
    assert ", ".join(CPU_METHODS) in message
    assert "stages.talker.quantization" in refusal(tmp_path, "stages: {talker: {quantization: 8}}")


def test_a_stage_that_vllm_does_not_run_is_not_quantised() -> None:
    """It would go on in its dtype without a word."""
    stages = {"code2wav": StageDeployment(device="cuda:0", quantization="fp8")}
    with pytest.raises(ConfigurationError, match=r"code2wav\.quantization is 'fp8'.*Leave"):
        load_pipeline("lark").check_deployment(DeployConfig(stages=stages))
    stages = {"talker": StageDeployment(device="cuda:0", quantization="fp8")}
    load_pipeline("lark").check_deployment(DeployConfig(stages=stages))


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, "stages: {talker: {replicas: 0, max_steps: 1}}")
    assert "replicas" in message
    assert "max_steps" in message


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_deploy_config(tmp_path / "missing.yaml", STAGES)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_deploy_config(tmp_path, STAGES)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_deploy_config(tmp_path / "binary.yaml", STAGES)
    assert "no valid YAML" in refusal(tmp_path, "stages: {talker: [}")
