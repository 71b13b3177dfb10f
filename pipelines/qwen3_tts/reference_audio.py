"""Reference audio: what a client may send, and how it is read."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
import soundfile
import soxr  # type: ignore[import-untyped]

from engine import InvalidRequestError

LONGEST_SECONDS = 60.0
SHORTEST_SECONDS = 0.1
LARGEST_TEXT = 4096
"""Characters of what is said in the reference audio."""


def check_reference(audio: bytes, text: str | None) -> None:
    """Looks at the header of reference audio, and at its text.

    Raises:
        InvalidRequestError: It is no audio file, or is too long or too short.
    """
    try:
        described = soundfile.info(io.BytesIO(audio))
    except soundfile.LibsndfileError as error:
        raise InvalidRequestError(
            "ref_audio",
            "ref_audio is no audio file that can be read (WAV, FLAC, OGG or MP3): "
            f"{error.error_string}",
        ) from error
    if not SHORTEST_SECONDS <= described.duration <= LONGEST_SECONDS:
        raise InvalidRequestError(
            "ref_audio",
            f"ref_audio lasts {described.duration:.2f} s; it must be from {SHORTEST_SECONDS} to "
            f"{LONGEST_SECONDS:.0f} s.",
        )
    if text is not None and len(text) > LARGEST_TEXT:
        raise InvalidRequestError(
            "ref_text",
            f"ref_text has {len(text)} characters; at most {LARGEST_TEXT} are allowed.",
        )


def read_reference(audio: bytes, rate: int) -> npt.NDArray[np.float32]:
    """The mono samples of reference audio, shape [samples].

    Args:
        audio: The bytes of an audio file.
        rate: Samples a second of the result; resampled as the reference does.

    Raises:
        ValueError: It cannot be read to its end.
    """
    try:
        samples, own_rate = soundfile.read(io.BytesIO(audio), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(f"The reference audio cannot be read: {error.error_string}") from error
    mono = samples.mean(axis=1)
    if own_rate == rate:
        return mono.astype(np.float32)
    wanted = int(np.ceil(len(mono) * rate / own_rate))
    made = soxr.resample(mono, own_rate, rate, quality="HQ")[:wanted]
    return np.pad(made, (0, wanted - len(made))).astype(np.float32)
