"""One encoder per response: float samples in, bytes of one continuous stream out.

Encoders do real work and belong on a worker thread (`app.audio.worker`). One is never used by two
threads at once, but consecutive calls may come from different threads.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from app.audio import pcm, wav
from app.audio.codec import CODECS, ContainerEncoder
from app.audio.formats import OUTPUT_SAMPLE_RATE, AudioFormat
from app.audio.pcm import FloatSamples
from app.audio.resample import StreamResampler
from app.audio.wav import UnknownWavSize


class AudioEncoder(Protocol):
    """What every encoder offers, in the order of its life: encode, finish, close."""

    @property
    def kept(self) -> int:
        """Bytes that are made already and that only `finish` returns."""
        ...

    def encode(self, samples: FloatSamples) -> bytes:
        """Takes samples that follow the ones before and returns what is ready to be sent."""
        ...

    def finish(self) -> bytes:
        """Flushes codec and container and returns the rest. Nothing is encoded after it."""
        ...

    def close(self) -> None:
        """Frees the codec, whether finished or not. May be called twice."""
        ...


class PlainEncoder:
    """PCM and WAV: bare 16-bit samples, with a header for WAV."""

    kept = 0

    def __init__(self, *, header: bytes = b"") -> None:
        """The header goes out with the first samples, never alone."""
        self._header = header

    def encode(self, samples: FloatSamples) -> bytes:
        """Converts the samples."""
        header = b""
        if len(samples):
            header, self._header = self._header, b""
        return header + pcm.to_bytes(samples)

    def finish(self) -> bytes:
        """Returns the header if no sample ever came, so that even silence is a valid file."""
        header, self._header = self._header, b""
        return header

    def close(self) -> None:
        """Holds nothing that would have to be freed."""


class WholeWavEncoder:
    """WAV with true sizes: everything comes out at the end."""

    def __init__(self, sample_rate: int) -> None:
        """The rate, in samples a second, goes into the header."""
        self._sample_rate = sample_rate
        self._samples = bytearray()

    @property
    def kept(self) -> int:
        """The samples so far."""
        return len(self._samples)

    def encode(self, samples: FloatSamples) -> bytes:
        """Keeps the samples."""
        self._samples += pcm.to_bytes(samples)
        return b""

    def finish(self) -> bytes:
        """Returns header and samples."""
        data = wav.sized_header(self._sample_rate, len(self._samples)) + self._samples
        self._samples.clear()
        return data

    def close(self) -> None:
        """Drops what was kept."""
        self._samples.clear()


class ResamplingEncoder:
    """Puts a sample rate conversion in front of another encoder."""

    def __init__(self, source_rate: int, encoder: AudioEncoder) -> None:
        """`source_rate` is what comes in, in samples a second."""
        self._resampler = StreamResampler(source_rate, OUTPUT_SAMPLE_RATE)
        self._encoder = encoder

    @property
    def kept(self) -> int:
        """What the encoder behind keeps; the conversion keeps next to nothing."""
        return self._encoder.kept

    def encode(self, samples: FloatSamples) -> bytes:
        """Converts and encodes."""
        return self._encoder.encode(self._resampler.process(samples))

    def finish(self) -> bytes:
        """Flushes the conversion's filter, then the encoder."""
        rest = self._resampler.process(np.zeros(0, np.float32), last=True)
        return self._encoder.encode(rest) + self._encoder.finish()

    def close(self) -> None:
        """Frees the encoder behind."""
        self._encoder.close()


def open_encoder(
    audio_format: AudioFormat,
    source_rate: int,
    *,
    whole: bool = False,
    unknown_wav_size: UnknownWavSize = UnknownWavSize.UNSIGNED,
) -> AudioEncoder:
    """Makes the encoder of one response.

    Args:
        audio_format: What the client asked for.
        source_rate: Samples a second of what will be encoded; the output has 24 000.
        whole: Whether the body is sent in one piece. Then all bytes come from `finish`, and
            headers that state sizes state the true ones.
        unknown_wav_size: What the header of a streamed WAV says about its size.
    """
    encoder: AudioEncoder
    if audio_format is AudioFormat.PCM:
        encoder = PlainEncoder()
    elif audio_format is AudioFormat.WAV and whole:
        encoder = WholeWavEncoder(OUTPUT_SAMPLE_RATE)
    elif audio_format is AudioFormat.WAV:
        header = wav.streamed_header(OUTPUT_SAMPLE_RATE, unknown_wav_size)
        encoder = PlainEncoder(header=header)
    else:
        encoder = ContainerEncoder(CODECS[audio_format], seekable=whole)
    if source_rate == OUTPUT_SAMPLE_RATE:
        return encoder
    return ResamplingEncoder(source_rate, encoder)
