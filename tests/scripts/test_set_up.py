from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the scripts folder, which import each other as scripts do."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import pip_progress
    import set_up
    import write_constraints

    return SimpleNamespace(set_up=set_up, pip=pip_progress, constraints=write_constraints)


PYPROJECT = '[project]\nname = "x"\ndependencies = ["a==1"]\n[tool.ruff]\nline-length = 100\n'

DECIDING = (
    "constraints/cpu.txt",
    "constraints/cuda.txt",
    "constraints/references.txt",
    "scripts/set_up.py",
    "scripts/repair_environment.py",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in DECIDING:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return tmp_path


def test_the_digest_changes_with_everything_that_decides_what_is_installed(
    scripts: SimpleNamespace, project: Path
) -> None:
    seen = {scripts.set_up.digest_of_inputs(project, "cpu")}
    seen.add(scripts.set_up.digest_of_inputs(project, "cuda"))
    for name in DECIDING:
        (project / name).write_text("changed")
        seen.add(scripts.set_up.digest_of_inputs(project, "cpu"))
    (project / "pyproject.toml").write_text(PYPROJECT.replace("a==1", "a==2"))
    seen.add(scripts.set_up.digest_of_inputs(project, "cpu"))
    assert len(seen) == 7


def test_the_digest_does_not_change_with_the_settings_of_tools(
    scripts: SimpleNamespace, project: Path
) -> None:
    before = scripts.set_up.digest_of_inputs(project, "cpu")
    (project / "pyproject.toml").write_text(PYPROJECT.replace("100", "120"))
    assert scripts.set_up.digest_of_inputs(project, "cpu") == before


@pytest.mark.parametrize(
    ("stamped", "asked", "expected"),
    [
        (("digest", "cpu", ["dev"]), ("digest", "cpu", []), True),
        (("digest", "cpu", ["dev"]), ("digest", "cpu", ["dev"]), True),
        (("digest", "cpu", []), ("digest", "cpu", ["dev"]), False),
        (("older", "cpu", []), ("digest", "cpu", []), False),
        (("digest", "cpu", []), ("digest", "cuda", []), False),
    ],
)
def test_an_environment_is_up_to_date_when_it_holds_all_that_is_asked_for(
    scripts: SimpleNamespace,
    stamped: tuple[str, str, list[str]],
    asked: tuple[str, str, list[str]],
    expected: bool,
) -> None:
    stamp = scripts.set_up.Stamp(*stamped)
    assert scripts.set_up.is_up_to_date(stamp, *asked) is expected


def test_a_stamp_is_read_as_it_was_written(scripts: SimpleNamespace, tmp_path: Path) -> None:
    stamp = scripts.set_up.Stamp("digest", "cpu", ["dev"])
    stamp.write(tmp_path)
    assert scripts.set_up.Stamp.read(tmp_path) == stamp


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"digest": 1}'])
def test_a_missing_or_damaged_stamp_is_no_stamp(
    scripts: SimpleNamespace, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / scripts.set_up.STAMP).write_text(content)
    assert scripts.set_up.Stamp.read(tmp_path) is None


def test_an_installation_that_fails_leaves_no_stamp(
    scripts: SimpleNamespace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = project / "environment"
    environment.mkdir()
    scripts.set_up.Stamp("older", "cpu", []).write(environment)
    monkeypatch.setattr(scripts.set_up, "make_environment", lambda *_, **__: None)

    def fail(*_: object) -> None:
        raise scripts.set_up.SetUpError("no")

    monkeypatch.setattr(scripts.set_up, "install", fail)
    with pytest.raises(scripts.set_up.SetUpError):
        scripts.set_up.set_up(project, environment, "cpu", [])
    assert scripts.set_up.Stamp.read(environment) is None


def test_extras_that_were_installed_are_kept_up_to_date_with_the_rest(
    scripts: SimpleNamespace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = project / "environment"
    environment.mkdir()
    scripts.set_up.Stamp("older", "cpu", ["dev"]).write(environment)
    installed: list[list[str]] = []
    monkeypatch.setattr(scripts.set_up, "make_environment", lambda *_, **__: None)
    monkeypatch.setattr(
        scripts.set_up, "install", lambda _root, _environment, _backend, e: installed.append(e)
    )
    scripts.set_up.set_up(project, environment, "cpu", [])
    scripts.set_up.set_up(project, environment, "cpu", ["dev"])
    assert installed == [["dev"]]


def test_the_other_build_of_vllm_gets_an_environment_made_anew(
    scripts: SimpleNamespace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = project / "environment"
    environment.mkdir()
    scripts.set_up.Stamp("older", "cpu", ["dev"]).write(environment)
    cleared: list[bool] = []
    monkeypatch.setattr(
        scripts.set_up, "make_environment", lambda _environment, *, clear: cleared.append(clear)
    )
    monkeypatch.setattr(scripts.set_up, "install", lambda *_: None)
    scripts.set_up.set_up(project, environment, "cuda", [])
    assert cleared == [True]
    assert scripts.set_up.Stamp.read(environment).extras == []


def test_torch_comes_from_pytorchs_index_only_if_pip_finds_no_cpu_build(
    scripts: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    output = "ERROR: No matching distribution found for torch==2.13.0+cpu"

    def run_pip(_python: Path, arguments: list[str], log: Path) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise scripts.pip.PipError(arguments, output, log)

    monkeypatch.setattr(scripts.set_up, "run_pip", run_pip)
    scripts.set_up.install_torch(Path(sys.executable), tmp_path / "log")
    assert calls[0] == ["install", "torch==2.13.0+cpu"]
    assert scripts.set_up.PYTORCH_CPU_INDEX in calls[1]

    calls.clear()
    output = "ERROR: no space left on device"
    with pytest.raises(scripts.pip.PipError, match="no space left"):
        scripts.set_up.install_torch(Path(sys.executable), tmp_path / "log")
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Collecting torch==2.13.0+cpu\n", "looking at torch"),
        ("Collecting numpy (from -c c.txt (line 3))", "looking at numpy"),
        ("  Downloading av-18.1.0-cp311-abi3-linux.whl (35.2 MB)", "fetching av (35.2 MB)"),
        ("  Using cached six-1.16.0-py3-none-any.whl (11 kB)", "fetching six (11 kB)"),
        ("Installing collected packages: six, av, numpy", "installing 3 packages"),
        ("Requirement already satisfied: six", None),
        ("  Preparing metadata (pyproject.toml): started", None),
    ],
)
def test_pips_lines_are_told_in_plain_words(
    scripts: SimpleNamespace, line: str, expected: str | None
) -> None:
    described = scripts.pip.describe(line)
    assert described is None if expected is None else described.startswith(expected)


def test_a_failing_pip_is_told_with_the_end_of_its_output(
    scripts: SimpleNamespace, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with pytest.raises(scripts.pip.PipError, match="unknown command"):
        scripts.pip.run_pip(Path(sys.executable), ["no-such-command"], log)
    assert "unknown command" in log.read_text()


def test_constraints_name_every_package_that_the_project_needs(scripts: SimpleNamespace) -> None:
    versions = scripts.constraints.installed_versions("antiphon", {"cpu", "dev"})
    assert versions["pydantic-core"]
    assert versions["ruff"]
    assert "antiphon" not in versions


def test_constraints_pin_what_pip_resolved(scripts: SimpleNamespace, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(
        '{"install": [{"metadata": {"name": "Some_Package", "version": "1.2"}},'
        ' {"metadata": {"name": "antiphon", "version": "0.1.0"}}]}'
    )
    assert scripts.constraints.resolved_versions(report) == {"some-package": "1.2"}


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_every_direct_dependency_is_pinned_as_the_project_says(backend: str) -> None:
    root = SCRIPTS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = (backend, "dev", "recipes")
    pinned = {
        line.split("==")[0]: line.split("==")[1]
        for line in (root / "constraints" / f"{backend}.txt").read_text().splitlines()
        if "==" in line
    }
    for requirement in [*project["dependencies"], *(r for name in wanted for r in extras[name])]:
        name, version = requirement.lower().split("==")
        assert pinned[name].partition("+")[0] == version, requirement
