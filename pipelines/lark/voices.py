"""The voices: one trained voice, and variants of it by pitch and vocal-tract length.

The variants are what their descriptions say and nothing else: the same speaker's articulation,
with the fundamental frequency and the spectral envelope scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import InvalidRequestError, VoiceDescription


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice.

    Attributes:
        index: Row of the Talker's voice embedding.
        f0_scale: Factor on the fundamental frequency.
        formant_scale: Factor on the frequencies of the spectral envelope.
        description: What clients may know.
    """

    index: int
    f0_scale: float
    formant_scale: float
    description: VoiceDescription


def _voice(
    name: str, f0_scale: float, formant_scale: float, text: str, aliases: tuple[str, ...]
) -> Voice:
    description = VoiceDescription(name, text, "en-US", aliases)
    return Voice(0, f0_scale, formant_scale, description)


VOICES: tuple[Voice, ...] = (
    _voice(
        "lark",
        1.0,
        1.0,
        "The trained voice: American English, female.",
        ("alloy", "marin", "nova", "shimmer", "heart", "default"),
    ),
    _voice(
        "wren",
        1.15,
        1.04,
        "Lark with a higher pitch and a shorter vocal tract.",
        ("coral", "fable"),
    ),
    _voice(
        "robin",
        0.82,
        0.96,
        "Lark with a lower pitch and a slightly longer vocal tract.",
        ("ballad", "sage", "verse"),
    ),
    _voice(
        "rook",
        0.65,
        0.93,
        "Lark much lower with a longer vocal tract, close to a male voice.",
        ("ash", "cedar", "echo", "onyx"),
    ),
)
"""The default voice comes first. The aliases are the names that OpenAI's clients send."""


def find_voice(name: str | None) -> Voice:
    """The voice of a name or alias; None means the default.

    Raises:
        InvalidRequestError: There is no such voice.
    """
    if name is None:
        return VOICES[0]
    wanted = name.strip().lower()
    for voice in VOICES:
        if wanted == voice.description.name or wanted in voice.description.aliases:
            return voice
    known = ", ".join(voice.description.name for voice in VOICES)
    aliases = ", ".join(sorted(a for v in VOICES for a in v.description.aliases))
    raise InvalidRequestError(
        "voice", f"There is no voice {name!r}. Voices: {known}; also understood: {aliases}."
    )
