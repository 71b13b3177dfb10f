"""Every setting of the server, read from environment variables that begin with ANTIPHON_.

This module is the only one that reads the process environment, and the one that prepares it for
libraries that look at it when they are first imported.
"""

from __future__ import annotations

import hashlib
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from app.audio.wav import UnknownWavSize
from app.conversation_settings import ConversationSettings

Words = Annotated[tuple[str, ...], NoDecode]
"""Several values in one variable, separated by commas."""


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def default_cache_folder() -> Path:
    """The user's cache folder of this platform, with a folder of ours in it."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "antiphon"


def default_static_folder() -> Path:
    """The browser demo of a source checkout, beside the packages."""
    return Path(__file__).resolve().parent.parent / "static"


class Settings(ConversationSettings):
    """The server's settings; each field is the variable ANTIPHON_<FIELD IN CAPITALS>."""

    model_config = SettingsConfigDict(
        env_prefix="ANTIPHON_", extra="ignore", frozen=True, allow_inf_nan=False
    )

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 for all.")
    port: int = Field(8000, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    log_level: LogLevel = Field(LogLevel.INFO, description="debug, info, warning or error.")

    pipeline: str = Field("lark", description="The pipeline that speaks.")
    model: str | None = Field(
        None, description="A folder, or a name of the catalogue, instead of its own model."
    )
    deploy: Path | None = Field(None, description="A deployment YAML instead of its own.")
    cache_folder: Path = Field(
        default_factory=default_cache_folder,
        description="Where prepared models are kept; the user's cache folder by default.",
    )
    compile_ahead: bool = Field(
        True, description="Compile models in the background so that the next start is faster."
    )
    static_folder: Path = Field(
        default_factory=default_static_folder,
        description="The browser demo, served at / if the folder holds an index.html.",
    )

    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Keys that clients may use, separated by commas; none lets everyone in."
    )
    cors_origins: Words = Field(
        (),
        description="Web pages of other origins that may call the API, separated by commas, such "
        "as https://example.org; * allows all.",
    )

    model_aliases: Words = Field(
        ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"),
        description="Model names that are accepted beside the pipeline's own.",
    )
    accept_any_model: bool = Field(
        False, description="Accept every model name instead of answering 404 to unknown ones."
    )
    maximum_input_characters: int = Field(
        4096, ge=1, description="Longest `input` of a speech request, in characters."
    )
    maximum_body_bytes: int = Field(
        1 << 20, ge=1024, description="Largest body of a JSON request, in bytes."
    )
    maximum_whole_bytes: int = Field(
        128 << 20,
        ge=1024,
        description="Largest body of a response that is not streamed, in bytes.",
    )
    streamed_wav_size: UnknownWavSize = Field(
        UnknownWavSize.UNSIGNED,
        description="What a streamed WAV states as its size: unsigned (0xFFFFFFFF, as OpenAI "
        "does) or signed (below 2^31, for players that fail on the former).",
    )

    timeline_requests: int = Field(
        512,
        ge=0,
        description="Requests whose timeline is kept, the newest; each takes about 2 kB.",
    )
    otlp_endpoint: str | None = Field(
        None,
        description="Where traces are sent, an OpenTelemetry collector's OTLP/HTTP address such "
        "as http://127.0.0.1:4318; none by default.",
    )

    request_deadline_seconds: float | None = Field(
        None, gt=0, description="A request is ended after this long; the deployment's by default."
    )
    slow_client_seconds: float = Field(
        20.0,
        gt=0,
        description="A client that reads slower than real time is cut off when it has fallen "
        "this far behind.",
    )
    write_buffer_bytes: int = Field(
        16 << 10, ge=1024, description="Bytes of a response that wait in the server's memory."
    )
    socket_send_buffer_bytes: int = Field(
        128 << 10,
        ge=4096,
        description="Bytes of a response that wait in the operating system; small, so that a "
        "client that does not read is noticed.",
    )
    shutdown_seconds: float = Field(
        15.0, gt=0, description="How long running streams may go on after SIGTERM."
    )
    codec_threads: int = Field(2, ge=1, le=64, description="Threads that encode audio.")

    websocket_contexts: int = Field(
        8, ge=1, description="Contexts at once on one text-in WebSocket."
    )
    websocket_context_characters: int = Field(
        100_000, ge=1, le=1_000_000, description="Most text of one context, in characters."
    )
    websocket_event_characters: int = Field(
        262_144, ge=1024, description="Longest event on the text-in WebSocket, in characters."
    )
    websocket_queue_bytes: int = Field(
        256 << 10,
        ge=4096,
        description="Bytes of audio that wait for one WebSocket's client before its contexts "
        "have to wait.",
    )
    websocket_idle_seconds: float = Field(
        120.0, gt=0, description="A WebSocket without events or audio for this long is closed."
    )
    websocket_ping_seconds: float = Field(
        20.0, gt=0, description="Time between pings to WebSocket clients."
    )
    websocket_pong_seconds: float = Field(
        120.0, gt=0, description="A WebSocket client that answers no ping for this long is gone."
    )
    websocket_frame_bytes: int = Field(
        24 << 20,
        ge=1 << 20,
        description="Largest WebSocket frame; 15 MiB of audio are 20 MiB of base64.",
    )

    @field_validator(
        "api_keys", "cors_origins", "model_aliases", "realtime_model_aliases", mode="before"
    )
    @classmethod
    def _split_words(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split(",") if word.strip())
        return value

    def key_digests(self) -> tuple[bytes, ...]:
        """SHA-256 of each API key; what is compared and what stands for a tenant."""
        return tuple(
            hashlib.sha256(key.get_secret_value().encode()).digest() for key in self.api_keys
        )


def prepare_process_environment(settings: Settings) -> None:
    """Sets what torch, vLLM and the hub library read when they are first imported.

    A value that the user has set stays. Must run before anything imports torch.

    Raises:
        RuntimeError: torch is imported already, so it is too late.
    """
    if "torch" in sys.modules:
        raise RuntimeError(
            "torch was imported before its environment was prepared; a step would take twenty "
            "times as long. Call prepare_process_environment first."
        )
    values = {
        # One thread does the arithmetic of a step: more of them spend their time on waiting for
        # each other, and vLLM's own binding to cores makes that worse on a shared machine.
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        # Conditioned stages are written against the first model runner.
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        # Compiled models lie with everything else that is prepared once.
        "VLLM_CACHE_ROOT": str(settings.cache_folder / "vllm"),
        "VLLM_LOGGING_LEVEL": "DEBUG" if settings.log_level is LogLevel.DEBUG else "ERROR",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "TOKENIZERS_PARALLELISM": "false",
    }
    named = (
        settings.model,
        settings.ear_activity_model,
        settings.ear_turn_end_model,
        settings.ear_recognizer_model,
    )
    if not any(_names_hub_model(model) for model in named):
        values["HF_HUB_OFFLINE"] = "1"
    for name, value in values.items():
        os.environ.setdefault(name, value)


def _names_hub_model(model: str | None) -> bool:
    """Whether a model has the form `owner/name` and is no folder here."""
    if model is None or Path(model).exists():
        return False
    owner, slash, name = model.partition("/")
    return bool(owner and slash and name) and "/" not in name and not owner.startswith((".", "~"))
