"""Listening: when somebody speaks, when they have finished, and what they said.

The models run on worker threads of the ear's own; the event loop only hands sound in and takes
findings out. All sound in here is mono at 16 kHz.
"""

SAMPLE_RATE = 16_000
"""Samples a second that all models of the ear hear."""

FRAME = 512
"""Samples that one judgement about speech is about."""
