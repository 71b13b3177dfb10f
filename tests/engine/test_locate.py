"""Models by folder, by the catalogue's name, and by their name on a hub."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import pytest

from engine import ConfigurationError
from engine.catalogue import Catalogue, ModelUnavailableError
from engine.locate import locate

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache, with one model in it that was downloaded before; the hub is out of reach."""
    cache = tmp_path / "hub"
    repository = cache / "models--somebody--listener"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    for name in ("main", "v2"):
        (repository / "refs" / name).write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return snapshot


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert locate(Catalogue(tmp_path), str(tmp_path)) == tmp_path


def test_a_name_of_the_catalogue_is_looked_up(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no model 'nobody'"):
        locate(Catalogue(tmp_path), "nobody")


@pytest.mark.parametrize("name", ["somebody/listener", "somebody/listener@v2"])
def test_a_name_on_the_hub_is_found_in_its_cache(
    tmp_path: Path, hub_cache: Path, name: str
) -> None:
    assert locate(Catalogue(tmp_path), name) == hub_cache


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize("name", ["nobody/nothing", "somebody/listener@v3"])
def test_what_the_hub_does_not_give_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelUnavailableError, match=f"'{name}' is no folder here, and the hub"):
        locate(Catalogue(tmp_path), name)
