"""Short-lived keys for browsers, each with the settings that its session begins with."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.realtime.session_schema import SessionPatch

PREFIX = "ek_"
_MOST = 10_000
"""Secrets that are known at once; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A short-lived key.

    Attributes:
        value: The key.
        expires_at: Unix time.
        session: What the session begins with.
        tenant: Whose key it was made with.
    """

    value: str
    expires_at: int
    session: SessionPatch
    tenant: str


class ClientSecrets:
    """The short-lived keys that are good now."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives Unix time."""
        self._clock = clock
        self._secrets: dict[str, ClientSecret] = {}

    def make(self, session: SessionPatch, tenant: str, seconds: int) -> ClientSecret:
        """Makes a key that is good for so long."""
        self._forget()
        value = PREFIX + secrets.token_hex(24)
        secret = ClientSecret(value, int(self._clock()) + seconds, session, tenant)
        self._secrets[value] = secret
        return secret

    def find(self, value: str | None) -> ClientSecret | None:
        """The key, if it is known and still good."""
        if value is None or not value.startswith(PREFIX):
            return None
        secret = self._secrets.get(value)
        return None if secret is None or secret.expires_at <= self._clock() else secret

    def _forget(self) -> None:
        now = self._clock()
        self._secrets = {k: s for k, s in self._secrets.items() if s.expires_at > now}
        while len(self._secrets) >= _MOST:
            del self._secrets[next(iter(self._secrets))]
