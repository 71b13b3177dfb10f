"""What the engine may know of how a Thinker hears and sees; cheap to import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine import AudioContent, PictureContent
from engine.pipeline_config import HearingConfig, Models

if TYPE_CHECKING:
    from engine.multimodal import MediaItem
    from pipelines.qwen.hearing import Hearing

MEL_FRAMES_PER_SECOND = 100
"""The feature extractors' hop is 10 ms."""

STAGE = "thinker"


def seeing(hearing_of: Callable[[Path], Hearing]) -> Callable[[Models, PictureContent], None]:
    """What makes of a picture what a Thinker's encoder reads, for `PipelineConfig.see`.

    Args:
        hearing_of: What hears and sees for the checkpoint in a folder, loaded once.
    """

    def see(models: Models, picture: PictureContent) -> None:
        hearing_of(models[STAGE]).seeing.see(picture)

    return see


def hearing_config(hearing_of: Callable[[Path], Hearing]) -> HearingConfig:
    """How a Thinker hears that is given a checkpoint's `Hearing`.

    Args:
        hearing_of: What hears for the checkpoint in a folder, loaded once.
    """

    def prepare(models: Models, sound: AudioContent) -> None:
        hearing_of(models[STAGE]).hear(sound)

    def beginning(models: Models, sound: AudioContent) -> Sequence[MediaItem]:
        return hearing_of(models[STAGE]).beginning(sound)

    return HearingConfig(STAGE, prepare, beginning)
