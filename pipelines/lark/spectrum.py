"""Sizes of the spectra that the decoder predicts and the synthesis turns into samples."""

from __future__ import annotations

from typing import Final

SAMPLE_RATE: Final = 24_000
HOP: Final = 300
OVERLAP: Final = 4
"""Hops in one window."""

WINDOW: Final = HOP * OVERLAP
BINS: Final = WINDOW // 2 + 1

VOICED_ABOVE: Final = 40.0
"""Hertz below which a frame has no pulses."""

BRANCHES: Final = 5
"""Log harmonic gain, harmonic phase, log noise gain, log free gain, free phase."""
