from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app.audio import pcm, wav
from app.audio.wav import UnknownWavSize


def test_full_scale_is_clipped_not_wrapped() -> None:
    samples = np.array([0.0, 1.0, -1.0, 1.5, -7.0], np.float32)
    assert pcm.to_int16(samples).tolist() == [0, 32767, -32767, 32767, -32767]


def test_what_is_no_number_is_silence() -> None:
    samples = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert pcm.to_int16(samples).tolist() == [0, 32767, -32767]


def test_bytes_are_little_endian() -> None:
    assert pcm.to_bytes(np.array([1 / 32767], np.float32)) == b"\x01\x00"


@given(arrays.arrays(np.float32, st.integers(0, 300)))
def test_two_bytes_a_sample_whatever_the_values(samples: np.ndarray) -> None:
    assert len(pcm.to_bytes(samples)) == 2 * len(samples)


@given(st.integers(-32767, 32767))
def test_every_16_bit_value_survives(value: int) -> None:
    sample = np.array([value / 32767], np.float32)
    assert pcm.to_int16(sample)[0] == value


def test_sized_header_is_read_by_the_wave_module() -> None:
    data = b"\x01\x00" * 480
    with wave.open(io.BytesIO(wav.sized_header(24_000, len(data)) + data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.getnframes() == 480
        assert file.readframes(480) == data


def test_streamed_header_states_what_openai_states() -> None:
    header = wav.streamed_header(24_000, UnknownWavSize.UNSIGNED)
    assert len(header) == wav.HEADER_BYTES
    assert struct.unpack_from("<I", header, 4) == (0xFFFFFFFF,)
    assert struct.unpack_from("<I", header, 40) == (0xFFFFFFFF,)


def test_signed_sizes_are_positive_for_every_player_and_consistent() -> None:
    header = wav.streamed_header(24_000, UnknownWavSize.SIGNED)
    (riff,) = struct.unpack_from("<i", header, 4)
    (data,) = struct.unpack_from("<i", header, 40)
    assert 0 < data < riff == data + 36
    assert data % 2 == 0


def test_more_than_a_wav_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        wav.sized_header(24_000, 1 << 32)
