"""What all tests share."""

from __future__ import annotations

# Before anything imports torch: what it and vLLM read from the environment is read once.
from app.settings import Settings, prepare_process_environment

prepare_process_environment(Settings())
