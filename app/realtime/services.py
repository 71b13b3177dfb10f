"""What all sessions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.audio.worker import CodecPool
from app.engine_port import SpeechEngine
from app.realtime.metrics import RealtimeMetrics
from app.settings import Settings
from app.timeline import Timelines

if TYPE_CHECKING:
    from app.ear.ear import Ear


@dataclass(frozen=True, slots=True)
class Services:
    """What all sessions share.

    Attributes:
        settings: Every limit.
        engine: The engine.
        codecs: The threads that convert sound.
        metrics: What is counted.
        timelines: Where the last requests' time went.
        ear: What listens; None where the models are missing or not wanted.
    """

    settings: Settings
    engine: SpeechEngine
    codecs: CodecPool
    metrics: RealtimeMetrics
    timelines: Timelines
    ear: Ear | None
