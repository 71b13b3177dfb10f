"""How the Thinker's encoder takes sounds; cheap to import."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.qwen3_omni.configuration import read_checkpoint

if TYPE_CHECKING:
    from pipelines.qwen.hearing import Hearing


@functools.cache
def hearing_of(folder: Path) -> Hearing:
    """What hears for a checkpoint, loaded once."""
    from transformers import Qwen3OmniMoeProcessor

    from pipelines.qwen.hearing import Hearing, SoundEncoder

    checkpoint = read_checkpoint(folder)
    tokens = functools.partial(sound_tokens, piece=checkpoint.sound_piece)
    encoder = SoundEncoder(checkpoint.sound_window, tokens, padded=False)
    return Hearing(folder, Qwen3OmniMoeProcessor, encoder)


def sound_tokens(frames: int, *, piece: int) -> int:
    """How many embeddings the encoder makes of mel frames: three convolutions of stride 2.

    Args:
        frames: Mel frames.
        piece: Frames that the convolutions take at a time.
    """
    whole, rest = divmod(frames, piece)
    return whole * -(-piece // 8) + -(-rest // 8)
