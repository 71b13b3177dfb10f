"""Qwen3-TTS (12 Hz): CustomVoice, VoiceDesign and Base checkpoints on the stage runtime."""
