from __future__ import annotations

import json
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app import doctor, doctor_libraries, doctor_machine
from app.audio.codec import CODECS
from app.audio.formats import AudioFormat
from app.cli import cli
from app.commands import doctor as command
from app.doctor_finding import Finding, Severity, fine
from app.settings import Settings
from engine.catalogue import Catalogue


def sound_report() -> dict[str, Any]:
    return {
        "imports": {"torch": None, "torchvision": None, "vllm": None},
        "vllm": "0.32.0",
        "supported_vllm": ["0.32.0"],
        "torch": {"version": "2.13.0+cpu", "cuda": None, "gpu": False, "threads": 1},
        "kernels": None,
        "architectures": {"SomeOmniModel": None},
    }


def read(report: dict[str, Any] | str) -> dict[str, Finding]:
    return {finding.check: finding for finding in doctor_libraries.check_libraries(report)}


def test_sound_libraries_are_fine() -> None:
    findings = read(sound_report())
    assert {finding.severity for finding in findings.values()} == {Severity.FINE}
    assert findings["torch"].message == "2.13.0+cpu, CPU build"


def test_an_unsupported_vllm_is_wrong_and_the_supported_ones_are_named() -> None:
    finding = read({**sound_report(), "vllm": "0.31.0"})["vLLM"]
    assert finding.severity is Severity.WRONG
    assert finding.message == "0.31.0; supported: 0.32.0."
    assert "make setup" in (finding.mend or "")


def test_a_broken_torchvision_is_wrong_and_the_repair_is_named() -> None:
    report = sound_report()
    report["imports"]["torchvision"] = "RuntimeError: operator torchvision::nms does not exist"
    findings = read(report)
    assert findings["import torchvision"].severity is Severity.WRONG
    assert "torchvision::nms" in findings["import torchvision"].message
    assert "repair_environment.py" in (findings["import torchvision"].mend or "")
    assert "imports" not in findings


def test_a_model_class_that_vllm_cannot_inspect_is_wrong() -> None:
    report = {**sound_report(), "architectures": {"SomeOmniModel": "ImportError: no"}}
    assert read(report)["vLLM's SomeOmniModel"].severity is Severity.WRONG


def test_kernels_that_do_not_load_are_wrong_and_the_library_is_named() -> None:
    report = {**sound_report(), "kernels": "AttributeError: no silu_and_mul"}
    finding = read(report)["vLLM's kernels"]
    assert finding.severity is Severity.WRONG
    assert "libnuma1" in (finding.mend or "")


def test_a_cuda_build_without_a_gpu_is_a_warning() -> None:
    report = sound_report()
    report["torch"] |= {"cuda": "13.0", "version": "2.13.0"}
    assert read(report)["torch"].severity is Severity.WARNING


def test_more_threads_than_cores_are_a_warning() -> None:
    report = sound_report()
    report["torch"]["threads"] = 4096
    assert "OMP_NUM_THREADS" in (read(report)["threads"].mend or "")


def test_libraries_that_take_their_process_down_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, -11, "", "Segmentation fault\n")

    monkeypatch.setattr(subprocess, "run", crash)
    finding = read(doctor_libraries.look_at_libraries([]))["libraries"]
    assert finding.severity is Severity.WRONG
    assert "Segmentation fault" in finding.message


def test_libraries_that_hang_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 300)

    monkeypatch.setattr(subprocess, "run", hang)
    finding = read(doctor_libraries.look_at_libraries([]))["libraries"]
    assert "no answer after 300 s" in finding.message


def test_the_libraries_of_this_environment_are_sound() -> None:
    report = doctor_libraries.look_at_libraries(["NoSuchModel"])
    assert isinstance(report, dict), report
    assert set(report["imports"].values()) == {None}
    assert report["vllm"] in report["supported_vllm"]
    assert report["kernels"] is None
    assert report["architectures"] == {"NoSuchModel": "this vLLM does not know it"}


@pytest.mark.parametrize(
    ("flags", "severity"),
    [
        ("flags : fpu sse4_2 avx2 fma", Severity.FINE),
        ("flags : fpu sse4_2", Severity.WRONG),
        ("", Severity.WRONG),
    ],
)
def test_a_processor_without_avx2_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, severity: Severity
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    (tmp_path / "cpuinfo").write_text(f"processor : 0\n{flags}\n")
    assert doctor_machine.check_processor(tmp_path / "cpuinfo").severity is severity


@pytest.mark.parametrize(
    ("available", "limit", "severity"),
    [
        (8 * 2**20, None, Severity.FINE),
        (8 * 2**20, "max", Severity.FINE),
        (8 * 2**20, str(2**30), Severity.WARNING),
        (2**20, None, Severity.WARNING),
    ],
)
def test_little_memory_is_a_warning_also_inside_a_container(
    tmp_path: Path, available: int, limit: str | None, severity: Severity
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {available} kB\n")
    if limit is not None:
        (tmp_path / "limit").write_text(limit)
    finding = doctor_machine.check_memory(tmp_path / "meminfo", tmp_path / "limit")
    assert finding.severity is severity


def test_one_core_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert doctor_machine.check_cores().severity is Severity.WARNING


def test_a_missing_compiler_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    finding = doctor_machine.check_compiler()
    assert finding.severity is Severity.WARNING
    assert "g++" in (finding.mend or "")


def test_every_response_format_can_be_encoded() -> None:
    assert doctor_machine.check_encoders().severity is Severity.FINE


def test_an_encoder_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mp3 = replace(CODECS[AudioFormat.MP3], encoder="no-such-encoder")
    monkeypatch.setitem(CODECS, AudioFormat.MP3, mp3)
    finding = doctor_machine.check_encoders()
    assert finding.severity is Severity.WRONG
    assert "mp3" in finding.message


def test_a_cache_folder_that_cannot_be_written_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = doctor_machine.check_cache(tmp_path / "file" / "cache")
    assert finding.severity is Severity.WRONG
    assert "ANTIPHON_CACHE_FOLDER" in (finding.mend or "")
    assert doctor_machine.check_cache(tmp_path / "cache").severity is Severity.FINE


def test_a_port_that_is_taken_is_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert doctor_machine.check_port("127.0.0.1", port).severity is Severity.WARNING
    assert doctor_machine.check_port("127.0.0.1", 0).severity is Severity.FINE


def test_models_that_serving_needs_must_be_there_and_others_only_whole(tmp_path: Path) -> None:
    def entry(*wanted_for: str) -> dict[str, Any]:
        source = {"packages": {"p": "1"}, "members": {"f": ["p:f"]}}
        files = {"f": {"sha256": "0" * 64}}
        words = {"summary": "s", "licence": "MIT", "origin": "o"}
        return {**words, "wanted_for": wanted_for, "files": files, "sources": [source]}

    models = {"voice": entry("serve"), "judge": entry("test"), "ear": entry("test")}
    (tmp_path / "catalogue.yaml").write_text(
        yaml.safe_dump(
            {
                "models": {
                    name: {**m, "wanted_for": [*m["wanted_for"]]} for name, m in models.items()
                }
            }
        )
    )
    catalogue = Catalogue(tmp_path / "cache")
    catalogue.add(tmp_path / "catalogue.yaml")
    (tmp_path / "cache/models/ear").mkdir(parents=True)
    findings = {finding.check: finding for finding in doctor.check_models(catalogue)}
    assert findings["model voice"].severity is Severity.WRONG
    assert findings["model ear"].severity is Severity.WARNING
    assert "model judge" not in findings


def run(monkeypatch: pytest.MonkeyPatch, findings: list[Finding], *options: str) -> tuple[int, str]:
    monkeypatch.setattr(command, "examine", lambda _: iter(findings))
    monkeypatch.setattr(command, "prepare_process_environment", lambda _: None)
    result = CliRunner().invoke(cli, ["doctor", *options])
    return result.exit_code, result.stdout


WRONG = Finding("thing", Severity.WRONG, "It is broken.", "Mend it.")


def test_the_command_fails_only_if_something_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    warning = Finding("thing", Severity.WARNING, "It is odd.")
    assert run(monkeypatch, [fine("thing", "good"), warning])[0] == 0
    code, output = run(monkeypatch, [fine("thing", "good"), WRONG])
    assert code == 1
    assert "It is broken." in output
    assert "Mend it." in output


def test_the_command_speaks_json(monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = run(monkeypatch, [WRONG], "--json")
    assert code == 1
    assert json.loads(output) == {
        "ok": False,
        "findings": [
            {
                "check": "thing",
                "severity": "wrong",
                "message": "It is broken.",
                "mend": "Mend it.",
            }
        ],
    }


def test_quick_checks_come_before_slow_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "look_at_libraries", lambda _: sound_report())
    settings = Settings(cache_folder=tmp_path, port=0)
    checks = [finding.check for finding in doctor.examine(settings)]
    assert checks[0] == "Python"
    assert checks.index("cache folder") < checks.index("torch")
