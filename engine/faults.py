"""Which exceptions count as a stage's, a model's or an adapter's fault."""

from __future__ import annotations

STAGE_FAULTS: tuple[type[Exception], ...] = (Exception,)
"""They end one request or one replica (invariant 11), whatever a pipeline's code raises.

A library's own exception classes cannot be listed here, and one that was forgotten would end the
engine thread and every request with it. Cancellations and interrupts are no `Exception`s and are
not swallowed.
"""
