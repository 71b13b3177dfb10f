"""Qwen2.5-Omni: a Thinker that hears, a Talker, and a flow-matching decoder that streams."""
