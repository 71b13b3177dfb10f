"""Chat with speech over HTTP: OpenAI's chat completions."""
