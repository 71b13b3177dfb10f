"""Turning the engine's float samples into the bytes that clients asked for."""

from app.audio.encoders import AudioEncoder, open_encoder
from app.audio.formats import OUTPUT_SAMPLE_RATE, AudioFormat

__all__ = ["OUTPUT_SAMPLE_RATE", "AudioEncoder", "AudioFormat", "open_encoder"]
