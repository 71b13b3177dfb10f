"""Why a request ends before it is done."""

from __future__ import annotations

from enum import StrEnum

from engine.errors import ErrorCode, InvalidRequestError, StageError


class AbortReason(StrEnum):
    """Why a request ended before it was done; finer than the code that its client sees."""

    DISCONNECTED = "disconnected"
    """Its reader left."""
    ASKED = "asked"
    """Somebody asked for the end, by its name."""
    REPLACED = "replaced"
    """A newer request of its session took its place."""
    SESSION_ENDED = "session_ended"
    SLOW_CLIENT = "slow_client"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    STAGE_FAILED = "stage_failed"
    INVALID_REQUEST = "invalid_request"
    """Its input turned out to be wrong when it was read."""
    SHUTTING_DOWN = "shutting_down"

    @property
    def code(self) -> ErrorCode:
        """What the request's reader is told."""
        return _CODES.get(self, ErrorCode.CANCELLED)


_CODES = {
    AbortReason.SLOW_CLIENT: ErrorCode.SLOW_CLIENT,
    AbortReason.DEADLINE_EXCEEDED: ErrorCode.DEADLINE_EXCEEDED,
    AbortReason.STAGE_FAILED: ErrorCode.STAGE_FAILED,
    AbortReason.INVALID_REQUEST: ErrorCode.INVALID_REQUEST,
    AbortReason.SHUTTING_DOWN: ErrorCode.SHUTTING_DOWN,
}

MESSAGES = {
    AbortReason.DISCONNECTED: "The request was cancelled.",
    AbortReason.ASKED: "The request was cancelled.",
    AbortReason.REPLACED: "A newer request of the session replaced this.",
    AbortReason.SESSION_ENDED: "The session has ended.",
    AbortReason.SLOW_CLIENT: "The client read slower than real time for too long.",
    AbortReason.DEADLINE_EXCEEDED: "The request's deadline passed before it was done.",
    AbortReason.STAGE_FAILED: "A stage failed.",
    AbortReason.INVALID_REQUEST: "The request's input is wrong.",
    AbortReason.SHUTTING_DOWN: "The engine is shutting down.",
}
"""One plain sentence each."""


def cause_of(fault: Exception | str, stage: str | None) -> tuple[StageError, AbortReason]:
    """What a request ends with for what an adapter or a stage raised.

    An adapter or a stage that finds a request's input wrong raises InvalidRequestError; everything
    else counts as the stage's own fault.
    """
    if isinstance(fault, InvalidRequestError):
        return fault.error, AbortReason.INVALID_REQUEST
    return StageError(ErrorCode.STAGE_FAILED, str(fault), stage=stage), AbortReason.STAGE_FAILED
