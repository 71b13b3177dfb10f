"""What clients see: HTTP, server-sent events, WebSocket, command line, limits and keys.

Nothing here imports torch or vLLM; the engine is reached through its public names only.
"""
