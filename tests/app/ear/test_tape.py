"""No sample of a session's sound is lost or heard twice, however it comes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.audio.wire_formats import WireFormat, encode
from app.ear.tape import Tape, samples_of, ticks_of

RAMP = np.sin(np.arange(48_000) / 40).astype(np.float32) * 0.5


def data_of(audio_format: WireFormat) -> bytes:
    return encode(RAMP, audio_format)


@pytest.mark.parametrize("audio_format", list(WireFormat))
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30))
def test_pieces_do_not_matter(audio_format: WireFormat, sizes: list[int]) -> None:
    data = data_of(audio_format)
    whole, pieces = Tape(), Tape()
    whole.append(data[: sum(sizes)], audio_format)
    position = 0
    for size in sizes:
        pieces.append(data[position : position + size], audio_format)
        position += size
    whole.flush()
    pieces.flush()
    assert whole.end == pieces.end == samples_of(audio_format.ticks(min(position, len(data))))
    np.testing.assert_allclose(whole.cut(0, whole.end), pieces.cut(0, pieces.end), atol=2e-3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=20))
def test_stretches_follow_each_other(sizes: list[int]) -> None:
    tape = Tape()
    tape.append(data_of(WireFormat.PCM), WireFormat.PCM)
    tape.flush()
    whole = tape.cut(0, tape.end)
    position, heard = 0, []
    for size in sizes:
        end = min(position + size, tape.end)
        heard.append(tape.cut(position, end))
        tape.drop_before(end)
        assert tape.begin == end
        position = end
    np.testing.assert_array_equal(np.concatenate(heard), whole[:position])


@given(st.integers(0, 10**9))
def test_positions_survive_the_way_to_ticks_and_back(position: int) -> None:
    assert samples_of(ticks_of(position)) == position


def test_formats_may_change_in_the_middle() -> None:
    tape = Tape()
    tape.append(data_of(WireFormat.PCM)[:9_600], WireFormat.PCM)
    tape.append(data_of(WireFormat.MU_LAW)[:1_600], WireFormat.MU_LAW)
    tape.append(data_of(WireFormat.A_LAW)[:1_600], WireFormat.A_LAW)
    tape.flush()
    assert tape.end == (4_800 * 2 // 3) + 3_200 + 3_200


def test_memory_follows_what_is_kept() -> None:
    tape = Tape()
    second = bytes(48_000)
    for number in range(120):
        tape.append(second, WireFormat.PCM)
        tape.drop_before(max(0, (number - 1) * 16_000))
    assert tape._buffer.nbytes < 2_000_000
