from __future__ import annotations

import gc
from collections.abc import Iterable

import numpy as np
import pytest

from app.audio import pcm
from app.audio.encoders import open_encoder
from app.audio.formats import OUTPUT_SAMPLE_RATE, AudioFormat
from tests.app.decoding import decode, lag_of

COMPRESSED = [AudioFormat.MP3, AudioFormat.OPUS, AudioFormat.AAC, AudioFormat.FLAC]
FILES = [*COMPRESSED, AudioFormat.WAV]
LARGEST_FRAME = 1152
"""Samples of the longest codec frame; padding at the end stays below two of them."""

DELAYS = {AudioFormat.MP3: 1105, AudioFormat.AAC: 1024}
"""Samples that decoders leave in front of the first real one: the encoder's own delay and the
decoder's, which neither format declares when it is streamed. Ogg Opus declares its own."""

SIGNAL_SAMPLES = 48_017


def _signal(count: int = SIGNAL_SAMPLES) -> np.ndarray:
    """A sweep behind a little silence, so that its place in time can be measured."""
    time = np.arange(count) / OUTPUT_SAMPLE_RATE
    return (0.4 * np.sin(2 * np.pi * (200 + 300 * time) * time) * (time > 0.05)).astype(np.float32)


def _encode(
    audio_format: AudioFormat, pieces: Iterable[np.ndarray], *, whole: bool = False
) -> bytes:
    encoder = open_encoder(audio_format, OUTPUT_SAMPLE_RATE, whole=whole)
    data = b"".join(encoder.encode(piece) for piece in pieces) + encoder.finish()
    encoder.close()
    return data


def _pieces(signal: np.ndarray, size: int) -> list[np.ndarray]:
    return [signal[start : start + size] for start in range(0, len(signal), size)]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("audio_format", FILES)
def test_decoding_gives_every_sample_at_its_time(audio_format: AudioFormat, whole: bool) -> None:
    signal = _signal()
    data = _encode(audio_format, _pieces(signal, 700), whole=whole)
    decoded, rate = decode(data)
    step = rate // OUTPUT_SAMPLE_RATE
    # A whole MP3 has the tag that declares the delay, and decoders remove it.
    declared = whole and audio_format is AudioFormat.MP3
    delay = 0 if declared else DELAYS.get(audio_format, 0)
    extra = len(decoded) / step - len(signal)
    assert delay <= extra <= delay + 2 * LARGEST_FRAME or (delay == 0 and 0 <= extra <= 60)
    assert lag_of(decoded[::step], signal) == delay


@pytest.mark.parametrize("audio_format", [AudioFormat.OPUS, AudioFormat.FLAC, AudioFormat.WAV])
@pytest.mark.parametrize("count", [1, 2, 479, 480, 481, 24_000])
def test_formats_that_declare_their_delay_give_the_exact_count(
    audio_format: AudioFormat, count: int
) -> None:
    data = _encode(audio_format, [_signal(count)])
    decoded, rate = decode(data)
    assert len(decoded) * OUTPUT_SAMPLE_RATE == count * rate


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_piece_sizes_do_not_show_in_the_stream(audio_format: AudioFormat) -> None:
    signal = _signal()
    small = _encode(audio_format, _pieces(signal, 240))
    uneven = _encode(audio_format, [signal[:1], signal[1:7], signal[7:30_000], signal[30_000:]])
    # An Ogg stream's serial number is drawn anew for each, and its checksums follow from it.
    if audio_format is AudioFormat.OPUS:
        assert np.array_equal(decode(small)[0], decode(uneven)[0])
    else:
        assert small == uneven


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("audio_format", [AudioFormat.FLAC, AudioFormat.WAV])
def test_lossless_formats_carry_the_samples_of_pcm(audio_format: AudioFormat, whole: bool) -> None:
    signal = _signal()
    data = _encode(audio_format, _pieces(signal, 1000), whole=whole)
    decoded, _ = decode(data)
    assert np.array_equal(np.rint(decoded * 32768).astype(np.int16), pcm.to_int16(signal))


@pytest.mark.parametrize(
    ("audio_format", "milliseconds"),
    [
        (AudioFormat.PCM, 20),
        (AudioFormat.WAV, 20),
        (AudioFormat.OPUS, 20),
        (AudioFormat.FLAC, 40),
        (AudioFormat.MP3, 60),
        (AudioFormat.AAC, 100),
    ],
)
def test_first_bytes_come_after_little_sound(audio_format: AudioFormat, milliseconds: int) -> None:
    encoder = open_encoder(audio_format, OUTPUT_SAMPLE_RATE)
    sent = 0
    for piece in _pieces(_signal(), 480):
        sent += 20
        if encoder.encode(piece):
            break
    encoder.close()
    assert sent <= milliseconds


def test_one_ogg_stream_from_first_to_last_page() -> None:
    data = _encode(AudioFormat.OPUS, _pieces(_signal(), 700))
    pages = data.split(b"OggS")[1:]
    serials = {page[10:14] for page in pages}
    assert len(serials) == 1
    assert [page[1] & 2 for page in pages].count(2) == 1, "one page begins the stream"
    assert pages[-1][1] & 4, "the last page ends the stream"


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_nothing_encoded_is_still_a_file(audio_format: AudioFormat) -> None:
    data = _encode(audio_format, [])
    if audio_format is AudioFormat.PCM:
        assert data == b""
    elif audio_format is AudioFormat.WAV:
        assert len(data) == 44
    else:
        assert len(decode(data)[0]) >= 1


@pytest.mark.parametrize("audio_format", FILES)
def test_what_a_whole_body_keeps_is_told(audio_format: AudioFormat) -> None:
    encoder = open_encoder(audio_format, OUTPUT_SAMPLE_RATE, whole=True)
    assert encoder.encode(_signal(96_000)) == b""
    half = encoder.kept
    assert half > 1000
    assert encoder.encode(_signal(96_000)) == b""
    assert half < encoder.kept <= len(encoder.finish())
    assert encoder.kept == 0


def test_wav_header_never_comes_without_sound() -> None:
    encoder = open_encoder(AudioFormat.WAV, OUTPUT_SAMPLE_RATE)
    assert encoder.encode(np.zeros(0, np.float32)) == b""
    assert encoder.encode(np.zeros(3, np.float32)).startswith(b"RIFF")
    assert encoder.encode(np.zeros(3, np.float32)) == b"\0" * 6


@pytest.mark.parametrize("audio_format", list(AudioFormat))
@pytest.mark.parametrize("rate", [16_000, 22_050, 44_100, 48_000])
def test_other_rates_come_out_at_24_khz(audio_format: AudioFormat, rate: int) -> None:
    signal = (0.3 * np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate)).astype(np.float32)
    encoder = open_encoder(audio_format, rate)
    data = b"".join(encoder.encode(piece) for piece in _pieces(signal, 1001)) + encoder.finish()
    encoder.close()
    if audio_format is AudioFormat.PCM:
        count = len(data) // 2
    else:
        decoded, decoded_rate = decode(data)
        count = len(decoded) * OUTPUT_SAMPLE_RATE // decoded_rate - DELAYS.get(audio_format, 0)
    assert abs(count - 2 * OUTPUT_SAMPLE_RATE) <= 2 * LARGEST_FRAME
    if audio_format.is_plain:
        assert abs(count - 2 * OUTPUT_SAMPLE_RATE) <= 22, "a plain format has no padding"


def test_closing_frees_without_the_garbage_collector() -> None:
    def rss() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    def abandon(times: int) -> None:
        for _ in range(times):
            encoder = open_encoder(AudioFormat.FLAC, OUTPUT_SAMPLE_RATE)
            encoder.encode(np.zeros(4800, np.float32))
            encoder.close()
            encoder.close()

    gc.disable()
    try:
        abandon(5)
        before = rss()
        abandon(40)
        assert rss() - before < 40e6, "each unfreed FLAC encoder would hold 7 MB"
    finally:
        gc.enable()
