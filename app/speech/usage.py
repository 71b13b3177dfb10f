"""The `usage` that clients are told."""

from __future__ import annotations

import math

_AUDIO_TOKENS_PER_SECOND = 20


def audio_tokens(seconds: float) -> int:
    """What a sound counts: one token for each begun 50 ms, as OpenAI counts spoken output."""
    # Rounding first keeps 1.05 s from counting as 22 tokens through its binary fraction.
    return math.ceil(round(seconds * _AUDIO_TOKENS_PER_SECOND, 6))


def usage_of(characters: int, seconds: float) -> dict[str, int]:
    """Counts one input token a character and one output token for each begun 50 ms.

    The voices read characters; no tokenizer of another model would count what happened here.

    Args:
        characters: Length of the input text.
        seconds: Duration of the audio.
    """
    output = audio_tokens(seconds)
    return {
        "input_tokens": characters,
        "output_tokens": output,
        "total_tokens": characters + output,
    }
