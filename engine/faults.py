"""Which exceptions count as a stage's, a model's or an adapter's fault.

They end one request or one replica (invariant 11). What is not named here, a cancellation or an
interrupt for example, is not swallowed.
"""

STAGE_FAULTS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What tensor libraries, vLLM's own assertions and conversions of odd input really raise."""
