"""G.711 as FFmpeg has it."""

from __future__ import annotations

import av
import numpy as np
import numpy.typing as npt
import pytest

from app.audio.wire_formats import TICKS_PER_SECOND, WireEncoder, WireFormat, decode, encode

FFMPEG = {WireFormat.MU_LAW: "pcm_mulaw", WireFormat.A_LAW: "pcm_alaw"}


def decoded_by_ffmpeg(data: bytes, audio_format: WireFormat) -> npt.NDArray[np.int16]:
    codec = av.CodecContext.create(FFMPEG[audio_format], "r")
    codec.sample_rate, codec.layout = 8000, "mono"  # type: ignore[attr-defined]
    frames = codec.decode(av.Packet(data))
    return np.asarray(frames[0].to_ndarray()).ravel()


@pytest.mark.parametrize("audio_format", list(FFMPEG))
def test_every_code_is_decoded_as_ffmpeg_does(audio_format: WireFormat) -> None:
    codes = bytes(range(256))
    ours = decode(codes, audio_format) * 32768
    np.testing.assert_array_equal(ours.astype(np.int16), decoded_by_ffmpeg(codes, audio_format))


@pytest.mark.parametrize("audio_format", list(FFMPEG))
def test_every_sample_gets_the_nearest_code(audio_format: WireFormat) -> None:
    samples = np.arange(-32767, 32768)
    codes = encode((samples / 32767).astype(np.float32), audio_format)
    error = np.abs(decoded_by_ffmpeg(codes, audio_format).astype(int) - samples)
    # A step of G.711 is at most a sixteenth of the magnitude.
    assert np.all(error <= np.maximum(np.abs(samples) / 32 + 8, 650))
    assert np.mean(error) < 320


@pytest.mark.parametrize("audio_format", list(WireFormat))
def test_an_answers_length_is_kept(audio_format: WireFormat) -> None:
    encoder = WireEncoder(24_000, audio_format)
    data = b"".join(encoder.encode(np.zeros(4_800, np.float32)) for _ in range(10))
    data += encoder.finish()
    assert audio_format.ticks(len(data)) == 2 * TICKS_PER_SECOND
