"""The WebSocket `/v1/audio/speech/stream`: text in as it is written, speech out as it is made."""
