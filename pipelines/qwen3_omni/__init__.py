"""`qwen3_omni`: Qwen3-Omni's Thinker, Talker and Code2Wav."""
