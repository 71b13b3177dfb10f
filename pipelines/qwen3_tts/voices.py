"""What clients may ask of a checkpoint: voices and languages."""

from __future__ import annotations

from engine import InvalidRequestError, SpeechParameters, VoiceDescription
from pipelines.qwen3_tts.configuration import Checkpoint, Variant
from pipelines.qwen3_tts.reference_audio import check_reference

OPENAI_VOICES = (
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
)  # fmt: skip

SUBTAGS = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "pt": "portuguese",
    "ru": "russian",
    "zh": "chinese",
}
"""Languages of the published checkpoints by their BCP 47 subtag."""

UNDETERMINED = "und"
"""The BCP 47 tag of a voice that speaks several languages."""

DESIGNED, CLONED = "designed", "reference"
"""The one voice of VoiceDesign and of Base checkpoints."""


def describe_voices(checkpoint: Checkpoint) -> tuple[VoiceDescription, ...]:
    """The voices of a checkpoint, the default first; OpenAI's names are aliases of them."""
    if checkpoint.variant is Variant.CUSTOM_VOICE:
        names = list(checkpoint.speakers)
        described = "A built-in speaker of the checkpoint."
    elif checkpoint.variant is Variant.VOICE_DESIGN:
        names, described = [DESIGNED], "The voice that the instructions describe."
    else:
        names, described = [CLONED], "The voice of the request's reference audio."
    return tuple(
        VoiceDescription(
            name,
            described,
            UNDETERMINED,
            tuple(a for i, a in enumerate(OPENAI_VOICES) if i % len(names) == index),
            cloned=checkpoint.variant is Variant.BASE,
        )
        for index, name in enumerate(names)
    )


def find_speaker(checkpoint: Checkpoint, voice: str | None) -> str | None:
    """The built-in speaker of that name, in any case; None: the checkpoint has none.

    Raises:
        InvalidRequestError: There is no such voice.
    """
    names = [description.name for description in describe_voices(checkpoint)]
    wanted = names[0] if voice is None else voice.casefold()
    for description in describe_voices(checkpoint):
        if wanted in (description.name.casefold(), description.name, *description.aliases):
            return description.name if checkpoint.speakers else None
    raise InvalidRequestError(
        "voice", f"voice is {voice!r}; this checkpoint has: {', '.join(names)}."
    )


def find_language(checkpoint: Checkpoint, language: str | None, speaker: str | None) -> int | None:
    """The codec token of a language; None: the model chooses.

    A speaker of a dialect speaks it where the language is left open or Chinese.

    Args:
        checkpoint: What is spoken with.
        language: A BCP 47 tag, a language's name, `auto`, or None for that.
        speaker: The built-in speaker, if there is one.

    Raises:
        InvalidRequestError: The checkpoint does not speak it.
    """
    name = "auto" if language is None else language.casefold()
    name = SUBTAGS.get(name.replace("_", "-").partition("-")[0], name)
    if name != "auto" and name not in checkpoint.spoken_languages:
        spoken = ", ".join(checkpoint.spoken_languages)
        raise InvalidRequestError(
            "language", f"language is {language!r}; this checkpoint speaks: {spoken}."
        )
    dialect = checkpoint.dialects.get(speaker or "")
    if dialect is not None and name in ("auto", "chinese"):
        return checkpoint.languages[dialect]
    return None if name == "auto" else checkpoint.languages[name]


def check_parameters(checkpoint: Checkpoint, parameters: SpeechParameters) -> None:
    """Refuses what a checkpoint cannot speak.

    Raises:
        InvalidRequestError: A parameter is at fault; it is named.
    """
    speaker = find_speaker(checkpoint, parameters.voice)
    find_language(checkpoint, parameters.language, speaker)
    audio, text = parameters.reference_audio, parameters.reference_text
    if audio is None and text is None:
        if checkpoint.variant is Variant.BASE and parameters.voice is not None:
            raise InvalidRequestError(
                "ref_audio",
                f"The voice {parameters.voice!r} is that of ref_audio, which is missing; this "
                "checkpoint has no voice of its own.",
            )
        return
    if checkpoint.variant is not Variant.BASE:
        raise InvalidRequestError(
            "ref_audio", "Only Base checkpoints clone voices; this one has its own. Leave it out."
        )
    if audio is None:
        raise InvalidRequestError("ref_text", "ref_text needs the ref_audio in which it is said.")
    check_reference(audio, text)
