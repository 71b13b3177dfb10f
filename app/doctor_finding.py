"""What a check of the installation finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SETUP = "Run: make setup"
"""Mends what is missing or of the wrong version."""


class Severity(StrEnum):
    """How much a finding matters."""

    FINE = "fine"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: What was looked at.
        severity: Whether it matters.
        message: What was found.
        mend: What to do about it, if anything.
    """

    check: str
    severity: Severity
    message: str
    mend: str | None = None


def fine(check: str, message: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Severity.FINE, message)
