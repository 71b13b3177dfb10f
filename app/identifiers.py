"""Identifiers that clients see and logs share."""

from __future__ import annotations

import secrets


def new_identifier(prefix: str) -> str:
    """A fresh identifier such as `req_8f0c…`, unique among all that ever live at once."""
    return f"{prefix}_{secrets.token_hex(12)}"
