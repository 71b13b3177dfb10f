from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

TEXT = """# A comment that stays.
models:
  voice:
    files:
      weights.bin: {}
      config.json: {size: 1, sha256: old}
    sources:
      - folder: weights

  other:
    files:
      weights.bin: {size: 7, sha256: kept}  # since it comes from elsewhere
    sources:
      - hub: a/b
"""


@pytest.fixture
def pin_weights(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("pin_weights")


def test_weights_that_ship_are_pinned_and_nothing_else_changes(
    pin_weights: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/weights.bin").write_bytes(b"weights")
    (tmp_path / "weights/config.json").write_bytes(b"{}")
    digests = {name: hashlib.sha256(name).hexdigest() for name in (b"weights", b"{}")}
    expected = TEXT.replace(
        "weights.bin: {}", f"weights.bin: {{size: 7, sha256: {digests[b'weights']}}}"
    ).replace("{size: 1, sha256: old}", f"{{size: 2, sha256: {digests[b'{}']}}}")
    assert pin_weights.pinned(TEXT, tmp_path) == expected
    assert pin_weights.pinned(expected, tmp_path) == expected


def test_an_entry_in_another_form_is_refused(pin_weights: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/weights.bin").write_bytes(b"weights")
    (tmp_path / "weights/config.json").write_bytes(b"{}")
    text = TEXT.replace("weights.bin: {}", "weights.bin:\n        size: 7")
    with pytest.raises(ValueError, match=r"weights\.bin"):
        pin_weights.pinned(text, tmp_path)
