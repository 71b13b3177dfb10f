"""The realtime conversation: OpenAI's Realtime protocol over a WebSocket."""
