"""What all requests of one application share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from app.audio.worker import CodecPool
from app.lifecycle import EngineLifecycle
from app.metrics import AppMetrics
from app.realtime.service import RealtimeService
from app.recordings import Recordings
from app.settings import Settings
from app.timeline import Timelines


@dataclass(slots=True)
class AppState:
    """What all requests of one application share.

    Attributes:
        settings: Every limit.
        lifecycle: The engine, once it is ready.
        metrics: What is counted.
        timelines: Where the last requests' time went.
        codecs: The threads that encode.
        recordings: What decodes clients' recordings.
        realtime: The realtime sessions, and the ear.
        key_digests: SHA-256 of each API key; empty when everyone may come in.
        created: Unix time of the start; the `created` of the models.
    """

    settings: Settings
    lifecycle: EngineLifecycle
    metrics: AppMetrics
    timelines: Timelines
    codecs: CodecPool
    recordings: Recordings
    realtime: RealtimeService
    key_digests: tuple[bytes, ...]
    created: int = field(default_factory=lambda: int(time.time()))


def state_of(connection: HTTPConnection) -> AppState:
    """The application's state; usable as a FastAPI dependency."""
    state = connection.app.state.antiphon
    assert isinstance(state, AppState)
    return state
