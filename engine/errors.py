"""What can go wrong in the engine, as data that travels and as exceptions that are raised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorCode(StrEnum):
    """Why a request did not end well. Stable: clients and metrics see these words."""

    INVALID_REQUEST = "invalid_request"
    """The request itself is wrong; `parameter` names the field."""
    OVERLOADED = "overloaded"
    """The waiting line is full; try again later."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    """The request's deadline passed."""
    SLOW_CLIENT = "slow_client"
    """The client read slower than real time past the stated buffer."""
    STAGE_FAILED = "stage_failed"
    """A stage raised while working on this request, or its replica died."""
    CANCELLED = "cancelled"
    """The client, an interruption or a replacement ended the request."""
    SHUTTING_DOWN = "shutting_down"
    """The engine is closing."""


@dataclass(frozen=True, slots=True)
class StageError:
    """The error that a failed request's final chunk carries.

    Attributes:
        code: The kind of failure.
        message: One plain sentence for people.
        parameter: The request field at fault, if one is.
        stage: The stage that failed, if one did.
    """

    code: ErrorCode
    message: str
    parameter: str | None = None
    stage: str | None = None


class EngineError(Exception):
    """Base of the exceptions that the engine raises to its callers."""

    def __init__(self, error: StageError) -> None:
        """Wraps the error as an exception."""
        super().__init__(error.message)
        self.error = error


class InvalidRequestError(EngineError):
    """A request field has a value that this pipeline cannot serve."""

    def __init__(self, parameter: str, message: str) -> None:
        """Names the field at fault and the mend."""
        super().__init__(StageError(ErrorCode.INVALID_REQUEST, message, parameter=parameter))
        self.parameter = parameter


class EngineOverloadedError(EngineError):
    """The waiting line is full. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        """Says when trying again makes sense, in seconds."""
        super().__init__(StageError(ErrorCode.OVERLOADED, message))
        self.retry_after = retry_after


class EngineClosedError(EngineError):
    """The engine is closing or closed."""

    def __init__(self, message: str = "The engine is shutting down.") -> None:
        """Says that no request is taken any more."""
        super().__init__(StageError(ErrorCode.SHUTTING_DOWN, message))


class ConfigurationError(Exception):
    """A configuration value is wrong; the message names the key, the value and the mend."""
