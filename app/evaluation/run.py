"""Speaks sentences, listens to them and compares."""

from __future__ import annotations

import wave
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx

from app.audio.pcm import FloatSamples
from app.evaluation.figures import Reading
from app.evaluation.sentences import Sentence
from app.evaluation.speaking import Spoken, served_model, speak
from app.evaluation.words_error import align, normalised
from app.load import SAMPLE_RATE

Listener = Callable[[FloatSamples, int], str]
"""What is said in a sound of the given rate."""

WARM_UP = "Good morning to you all."
"""Spoken once before anything is measured, since a server's first request is slower."""


def readings(
    client: httpx.Client,
    sentences: Sequence[Sentence],
    voice: str,
    listener: Listener,
    folder: Path | None = None,
) -> Iterator[Reading]:
    """Speaks one sentence after the other and listens to each when it is over.

    Args:
        client: Of the server that speaks.
        sentences: What to say.
        voice: Whose voice.
        listener: Hears what was said.
        folder: Where to keep each sound as `<name>.wav`; None keeps none.

    Raises:
        httpx.HTTPError: The server does not answer, answers with an error or broke off.
    """
    model = served_model(client)
    speak(client, model, WARM_UP, voice)
    for sentence in sentences:
        spoken = speak(client, model, sentence.text, voice)
        if folder is not None:
            write_sound(folder / f"{sentence.name}.wav", spoken)
        heard = listener(spoken.samples, SAMPLE_RATE)
        alignment = align(normalised(sentence.text), normalised(heard))
        yield Reading(sentence, heard, alignment, spoken.took)


def write_sound(path: Path, spoken: Spoken) -> None:
    """Keeps a sound as a WAV file."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(spoken.data)
