"""How the Thinker's encoder takes sounds; cheap to import."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.qwen.hearing import Hearing


@functools.cache
def hearing_of(folder: Path) -> Hearing:
    """What hears for a checkpoint, loaded once."""
    from transformers import Qwen2_5OmniProcessor

    from pipelines.qwen.hearing import Hearing, SoundEncoder

    encoder = SoundEncoder(sound_window(folder), sound_tokens, padded=True)
    return Hearing(folder, Qwen2_5OmniProcessor, encoder)


@functools.cache
def sound_window(folder: Path) -> int:
    """Mel frames within which the attention of a checkpoint's audio encoder stays."""
    from pipelines.qwen2_5_omni.checkpoint import load_config

    return 2 * int(load_config(folder).thinker_config.audio_config.n_window)


def sound_tokens(frames: int) -> int:
    """How many embeddings the encoder makes of mel frames: a convolution, then means of pairs."""
    return -(-frames // 2) // 2
