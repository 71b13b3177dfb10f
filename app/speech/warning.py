"""The header that says what of the input could not be spoken."""

from __future__ import annotations

from collections.abc import Sequence

WARNING_HEADER = "X-Antiphon-Warning"

_SHOWN = 20
"""Characters that are named; a header must stay short whatever the input was."""


def code_points(characters: Sequence[str]) -> list[str]:
    """The characters as `U+1F600`, or `U+0065+U+0301` where several make one."""
    return ["+".join(f"U+{ord(point):04X}" for point in character) for character in characters]


def warning_for(left_out: Sequence[str]) -> dict[str, str]:
    """The header for characters that were left out; no header when there were none.

    Its value has ASCII only: `left-out; count=2; characters="U+4E16 U+754C"`.
    """
    if not left_out:
        return {}
    shown = " ".join(code_points(left_out[:_SHOWN]))
    return {WARNING_HEADER: f'left-out; count={len(left_out)}; characters="{shown}"'}
