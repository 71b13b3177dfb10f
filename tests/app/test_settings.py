from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.audio.wav import UnknownWavSize
from app.settings import LogLevel, Settings, default_cache_folder, prepare_process_environment

FORBIDDEN_IN_APP = ("os.environ", "getenv")


def test_every_setting_has_a_documented_default() -> None:
    settings = Settings()
    for name, field in Settings.model_fields.items():
        assert field.description, f"{name} has no description"
        assert not field.is_required()
    assert settings.host == "127.0.0.1"
    assert settings.maximum_input_characters == 4096
    assert settings.api_keys == ()


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_PORT", "9000")
    monkeypatch.setenv("ANTIPHON_API_KEYS", " one, two ,")
    monkeypatch.setenv("ANTIPHON_CORS_ORIGINS", "https://example.org")
    monkeypatch.setenv("ANTIPHON_LOG_LEVEL", "debug")
    monkeypatch.setenv("ANTIPHON_STREAMED_WAV_SIZE", "signed")
    settings = Settings()
    assert settings.port == 9000
    assert [key.get_secret_value() for key in settings.api_keys] == ["one", "two"]
    assert settings.cors_origins == ("https://example.org",)
    assert settings.log_level is LogLevel.DEBUG
    assert settings.streamed_wav_size is UnknownWavSize.SIGNED


def test_keys_do_not_show_in_a_printed_form() -> None:
    assert "secret-key" not in repr(Settings.model_validate({"api_keys": "secret-key"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 70_000),
        ("slow_client_seconds", 0),
        ("shutdown_seconds", "inf"),
        ("realtime_session_seconds", "nan"),
        ("codec_threads", 0),
        ("maximum_input_characters", 0),
        ("websocket_context_characters", 2_000_000),
        ("log_level", "loud"),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({name: value})


def test_the_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_folder() == tmp_path / "antiphon"


def test_only_the_settings_read_the_environment() -> None:
    app = Path(__file__).resolve().parents[2] / "app"
    for module in app.rglob("*.py"):
        if module.name != "settings.py":
            source = module.read_text()
            assert not any(word in source for word in FORBIDDEN_IN_APP), module


def test_the_environment_is_prepared_before_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for name in ("OMP_NUM_THREADS", "HF_HUB_OFFLINE", "VLLM_LOGGING_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0-1")
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_NO_USAGE_STATS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))
    prepare_process_environment(Settings())
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["VLLM_CPU_OMP_THREADS_BIND"] == "0-1", "what the user set stays"


def test_a_hub_model_lets_the_hub_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    prepare_process_environment(Settings(model="owner/name"))
    assert "HF_HUB_OFFLINE" not in os.environ


def test_too_late_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", object())  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="before"):
        prepare_process_environment(Settings())


def test_the_app_imports_neither_torch_nor_vllm() -> None:
    program = (
        "import pkgutil, importlib, sys, app\n"
        "for module in pkgutil.walk_packages(app.__path__, 'app.'):\n"
        "    importlib.import_module(module.name)\n"
        "heavy = {'torch', 'vllm', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
