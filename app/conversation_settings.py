"""The settings of conversations: what listens, and every limit of a realtime session."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, NoDecode


class ConversationSettings(BaseSettings):
    """The part of the server's settings that is about listening and conversing."""

    ear: bool = Field(True, description="Load what listens; without it, clients can only write.")
    ear_activity_model: str = Field(
        "silero-vad",
        description="What tells speech from other sounds: a model of the catalogue, a folder, or a "
        "name on the hub, with a Silero model for ONNX.",
    )
    ear_turn_end_model: str = Field(
        "smart-turn-v3",
        description="What tells whether a speaker has finished: a model of the catalogue, a "
        "folder, or a name on the hub, with a Smart Turn model for ONNX.",
    )
    ear_recognizer_model: str = Field(
        "whisper-tiny-en",
        description="What recognizes words: a model of the catalogue, a folder, or a name on the "
        "hub, with a Whisper model for CTranslate2.",
    )
    ear_hearing_threads: int = Field(
        1, ge=1, le=64, description="Threads that judge sound as it comes."
    )
    ear_recognizers: int = Field(
        1, ge=1, le=64, description="Turns whose words are recognized at once."
    )
    ear_speech_ms: int = Field(
        64, ge=32, le=2000, description="Speech of this length begins a turn, in milliseconds."
    )
    ear_interruption_ms: int = Field(
        400,
        ge=32,
        le=5000,
        description="Speech of this length interrupts an answer, in milliseconds; shorter sounds "
        "such as 'mm-hm' do not.",
    )
    ear_interruption_threshold: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Least probability of speech while an answer is heard, whose echo may be "
        "taken for speech.",
    )
    ear_pause_ms: int = Field(
        200,
        ge=64,
        le=2000,
        description="After a pause of this length the words so far are recognized, in "
        "milliseconds.",
    )

    realtime_model_aliases: Annotated[tuple[str, ...], NoDecode] = Field(
        (
            "gpt-realtime",
            "gpt-realtime-mini",
            "gpt-realtime-1.5",
            "gpt-realtime-2",
            "gpt-4o-realtime-preview",
            "gpt-4o-mini-realtime-preview",
            "gpt-audio",
            "gpt-audio-mini",
            "gpt-4o-audio-preview",
        ),
        description="Model names that conversations accept beside the pipeline's own.",
    )
    realtime_sessions: int = Field(32, ge=1, description="Realtime sessions at once.")
    realtime_session_seconds: float = Field(
        3600.0, gt=0, description="A realtime session ends after this long."
    )
    realtime_resume_seconds: float = Field(
        30.0,
        ge=0,
        description="How long a session that can be resumed waits for its client to come back.",
    )
    realtime_items: int = Field(1000, ge=1, description="Most items of a conversation.")
    realtime_history_characters: int = Field(
        5000,
        ge=100,
        description="How much of a conversation the Thinker reads, in characters, unless a "
        "session's truncation is disabled; the oldest turns are left out. About three characters "
        "are a token.",
    )
    realtime_append_bytes: int = Field(
        15 << 20, ge=1024, description="Most sound of one append event, in bytes."
    )
    realtime_buffer_seconds: float = Field(
        600.0, gt=0, description="Most sound that may wait to be committed."
    )
    realtime_queue_bytes: int = Field(
        256 << 10,
        ge=4096,
        description="Bytes of sound that wait for a realtime client before its answer has to wait.",
    )
    realtime_control_bytes: int = Field(
        4 << 20,
        ge=65_536,
        description="Bytes of other events that may wait; a client that leaves more is cut off.",
    )
    realtime_secret_seconds: int = Field(
        600, ge=10, le=7200, description="How long a client secret is good for, if not asked for."
    )
    transcription_bytes: int = Field(
        25 << 20, ge=1024, description="Largest recording to be transcribed, in bytes."
    )
    transcription_seconds: float = Field(
        3600.0, gt=0, description="Longest recording to be transcribed, in seconds."
    )
    transcriptions: int = Field(8, ge=1, description="Recordings transcribed at once.")
