"""`lark`, the embedded English voice: an autoregressive Talker and a streaming Code2Wav."""
