"""What a client chooses for a context."""

from __future__ import annotations

from dataclasses import dataclass

from app.audio.formats import AudioFormat
from app.settings import Settings
from app.speech.command import (
    check_model,
    check_reads_aloud,
    check_timestamps,
    resolve_voice,
)
from app.text_stream.events import ContextCreate, server_event
from engine import PipelineDescription, SpeechParameters


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """What a client chose for a context.

    Attributes:
        context_id: Its name on this socket.
        parameters: How to speak.
        audio_format: The format of its audio.
        word_timestamps: Whether the client wants the time of each word.
    """

    context_id: str
    parameters: SpeechParameters
    audio_format: AudioFormat
    word_timestamps: bool


def resolve_options(
    event: ContextCreate, context_id: str, description: PipelineDescription, settings: Settings
) -> ContextOptions:
    """Checks a client's choices against this pipeline.

    Raises:
        ApiError: One of them cannot be served.
    """
    if event.model is not None:
        check_model(event.model, description, settings)
    check_reads_aloud(description)
    if event.timestamps is not None:
        check_timestamps(description)
    return ContextOptions(
        context_id=context_id,
        parameters=SpeechParameters(
            voice=resolve_voice(event.voice or description.voices[0].name, description),
            speed=event.speed,
            seed=event.seed,
            instructions=event.instructions,
        ),
        audio_format=event.response_format,
        word_timestamps=event.timestamps is not None,
    )


def created_event(options: ContextOptions, request_id: str) -> str:
    """The event that acknowledges a new context, with everything as it will be used."""
    return server_event(
        "context.created",
        context_id=options.context_id,
        request_id=request_id,
        voice=options.parameters.voice,
        speed=options.parameters.speed,
        response_format=options.audio_format,
        seed=options.parameters.seed,
        timestamps="word" if options.word_timestamps else None,
    )
