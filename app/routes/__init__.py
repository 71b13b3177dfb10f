"""The HTTP endpoints, one module each."""
