"""Source-filter synthesis: the decoder's spectra and f0 become samples, frame by frame.

Every 12.5 ms frame is the sum of three parts in the frequency domain:

* a pulse train at f0, windowed and transformed, shaped by the harmonic branch;
* noise shaped by the noise branch;
* a branch of free phase for what is neither.

An inverse transform with a Hann window of four hops and overlap-adding gives the samples. All that
crosses from one call to the next is carried in `SynthesisState`, so the samples do not depend on
how the frames were split into calls. The frames of all requests are transformed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import fft

from pipelines.lark.spectrum import (
    BINS,
    BRANCHES,
    HOP,
    OVERLAP,
    SAMPLE_RATE,
    VOICED_ABOVE,
    WINDOW,
)
from pipelines.lark.variants import vary

FloatArray = npt.NDArray[np.float32]
ComplexArray = npt.NDArray[np.complex64]

DELAY: Final = 2
"""Frames that must follow a frame before its samples are complete."""

_HIGHEST_HARMONIC: Final = 11_000.0
_LARGEST_LOG_GAIN: Final = 7.0
_NEAR_PULSE: Final = 2e-3

_HANN: Final = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
_ANALYSIS: Final = (_HANN / HOP).astype(np.float32)
"""Scaled so that a harmonic of unit amplitude has a peak of one in the transform."""

_SYNTHESIS: Final = (_HANN / 1.5).astype(np.float32)
"""Squared Hann windows at four hops sum to 1.5."""


@dataclass
class SynthesisState:
    """What one request carries between calls.

    Attributes:
        seed: of the noise.
        f0_scale: multiplies the pitch.
        formant_scale: above one moves the spectral envelope up, as a shorter vocal tract does.
    """

    seed: int = 0
    f0_scale: float = 1.0
    formant_scale: float = 1.0
    generator: np.random.Generator = field(init=False, repr=False)
    f0: FloatArray = field(init=False, repr=False)
    """Frames of f0 whose pulses are not made yet, after the one frame before them."""
    phase: float = field(init=False, default=0.0)
    """In cycles, at the end of the last pulse sample."""
    pulses: FloatArray = field(init=False, repr=False)
    """Hops of the pulse train from two before the next frame on, [n, HOP]."""
    tail: FloatArray = field(init=False, repr=False)
    """Unfinished hops of the output, [OVERLAP - 1, HOP]."""
    pitch: FloatArray = field(init=False, repr=False)
    """The decoder's own f0 of the frames that are not synthesised yet."""
    frames: int = field(init=False, default=0)
    """Frames synthesised so far."""

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)
        self.f0 = np.zeros(0, np.float32)
        self.pitch = np.zeros(0, np.float32)
        self.pulses = np.zeros((DELAY, HOP), np.float32)
        self.tail = np.zeros((OVERLAP - 1, HOP), np.float32)

    @property
    def changes_voice(self) -> bool:
        """Whether this request's voice is a variant of the trained one."""
        return self.f0_scale != 1.0 or self.formant_scale != 1.0


def synthesise(
    states: Sequence[SynthesisState],
    spectra: FloatArray,
    counts: Sequence[int],
    f0: Sequence[FloatArray],
    final: Sequence[bool],
) -> list[FloatArray]:
    """Turn the next frames of several requests into samples.

    Args:
        states: one for each request, changed in place.
        spectra: [sum(counts), BRANCHES * BINS] frames of all requests, one request after another.
        counts: frames of each request.
        f0: hertz; runs ahead of the spectra by at least `DELAY` + 1 frames until the request ends.
        final: whether the request ends with this call.

    Returns:
        The samples of each request that are complete now.
    """
    extend_pulses(states, f0, final)
    sources = windows(states, counts)
    branches = spectra.reshape(-1, BRANCHES, BINS)
    pitch = _pitch(states, counts)
    if any(state.changes_voice for state in states):
        branches = _varied(states, counts, branches, pitch)
    harmonic, phase, noise, free, free_phase = branches.swapaxes(0, 1)
    spectrum = fft.rfft(sources, axis=1, overwrite_x=True)
    spectrum *= _polar(_gain(harmonic), np.pi * np.tanh(phase))
    spectrum += _noise(states, counts) * _gain(noise)
    spectrum += _polar(_gain(free), free_phase)
    frames = fft.irfft(spectrum, n=WINDOW, axis=1, overwrite_x=True)
    frames *= _SYNTHESIS
    return _overlap_add(states, frames.reshape(-1, OVERLAP, HOP), counts, final)


def _gain(logarithm: FloatArray) -> FloatArray:
    """Return exp of a log gain, limited."""
    gain: FloatArray = np.exp(np.minimum(logarithm, _LARGEST_LOG_GAIN))
    return gain


def _polar(magnitude: FloatArray, angle: FloatArray) -> ComplexArray:
    """Return magnitude and angle as complex numbers."""
    result = np.empty(magnitude.shape, np.complex64)
    np.multiply(magnitude, np.cos(angle), out=result.real)
    np.multiply(magnitude, np.sin(angle), out=result.imag)
    return result


def _pitch(states: Sequence[SynthesisState], counts: Sequence[int]) -> list[FloatArray]:
    """Take the decoder's own f0 of the frames that are synthesised now."""
    taken = []
    for state, count in zip(states, counts, strict=True):
        taken.append(state.pitch[:count])
        state.pitch = state.pitch[count:]
    return taken


def _varied(
    states: Sequence[SynthesisState],
    counts: Sequence[int],
    branches: FloatArray,
    pitch: Sequence[FloatArray],
) -> FloatArray:
    """Return [N, BRANCHES, BINS] changed for the requests that speak with a voice variant."""
    result = branches.copy()
    start = 0
    for state, count, f0 in zip(states, counts, pitch, strict=True):
        if state.changes_voice and count:
            rows = branches[start : start + count]
            changed = vary(rows, f0, state.f0_scale, state.formant_scale)
            result[start : start + count] = changed
        start += count
    return result


def _noise(states: Sequence[SynthesisState], counts: Sequence[int]) -> ComplexArray:
    """Draw complex noise [sum(counts), BINS], frame after frame from each request's generator."""
    drawn = [
        state.generator.standard_normal((count, 2 * BINS), dtype=np.float32)
        for state, count in zip(states, counts, strict=True)
    ]
    return np.concatenate(drawn).view(np.complex64)


def windows(states: Sequence[SynthesisState], counts: Sequence[int]) -> FloatArray:
    """Cut the pulse trains into analysis windows [sum(counts), WINDOW] and drop what is used up."""
    cut = np.empty((sum(counts), OVERLAP, HOP), np.float32)
    start = 0
    for state, count in zip(states, counts, strict=True):
        if len(state.pulses) < count + OVERLAP - 1 and count:
            raise ValueError("The f0 of a request must run ahead of its spectra.")
        for hop in range(OVERLAP):
            cut[start : start + count, hop] = state.pulses[hop : hop + count]
        state.pulses = state.pulses[count:]
        start += count
    flat = cut.reshape(-1, WINDOW)
    flat *= _ANALYSIS
    return flat


def extend_pulses(
    states: Sequence[SynthesisState], f0: Sequence[FloatArray], final: Sequence[bool]
) -> None:
    """Add to each request's pulse train what its new f0 frames determine."""
    rates = [
        _sample_rates(state, new, last) for state, new, last in zip(states, f0, final, strict=True)
    ]
    for state, new in zip(states, f0, strict=True):
        state.pitch = np.concatenate([state.pitch, new])
    phases = []
    for state, rate in zip(states, rates, strict=True):
        cycles = state.phase + np.cumsum(rate, dtype=np.float64) / SAMPLE_RATE
        if len(cycles):
            state.phase = float(cycles[-1] % 1.0)
        phases.append(cycles % 1.0)
    train = _pulse_train(np.concatenate(phases).astype(np.float32), np.concatenate(rates))
    start = 0
    for state, rate, last in zip(states, rates, final, strict=True):
        made = [state.pulses, train[start : start + len(rate)].reshape(-1, HOP)]
        if last:
            made.append(np.zeros((DELAY, HOP), np.float32))
        state.pulses = np.concatenate(made)
        start += len(rate)


def _sample_rates(state: SynthesisState, new: FloatArray, last: bool) -> FloatArray:
    """Return the pulse rate in hertz at each sample of the frames that are certain now.

    A frame is certain once the next frame is known. Between two voiced frames the rate is
    interpolated; between a voiced and an unvoiced one it is held up to the middle.
    """
    scaled = np.asarray(new, np.float32) * np.float32(state.f0_scale)
    if len(state.f0) == 0 and len(scaled):
        scaled = np.concatenate([scaled[:1], scaled])
    known = np.concatenate([state.f0, scaled])
    if last and len(known):
        known = np.concatenate([known, known[-1:]])
    if len(known) < 3:
        state.f0 = known
        return np.zeros(0, np.float32)
    before, here, after = known[:-2, None], known[1:-1, None], known[2:, None]
    ramp = ((np.arange(HOP // 2) + 0.5) / HOP).astype(np.float32)
    voiced = here > VOICED_ABOVE
    before = np.where((before > VOICED_ABOVE) & voiced, before, here)
    after = np.where((after > VOICED_ABOVE) & voiced, after, here)
    first = before * (0.5 - ramp) + here * (0.5 + ramp)
    second = here * (1.0 - ramp) + after * ramp
    state.f0 = known[-2:]
    return np.concatenate([first, second], axis=1).reshape(-1)


def _pulse_train(phase: FloatArray, rate: FloatArray) -> FloatArray:
    """Return the sum of all harmonics below 11 kHz at unit amplitude, 0 where unvoiced.

    The closed form of the sum is sin((H + 1/2) t) / (2 sin(t / 2)) - 1/2.
    """
    voiced = rate > VOICED_ABOVE
    harmonics = np.floor(_HIGHEST_HARMONIC / np.maximum(rate, VOICED_ABOVE)) + np.float32(0.5)
    angle = phase * np.float32(2 * np.pi)
    below = 2 * np.sin(0.5 * angle)
    peak = np.abs(below) <= _NEAR_PULSE
    train = np.sin(harmonics * angle) / np.where(peak, np.float32(1.0), below)
    train = np.where(peak, harmonics, train) - np.float32(0.5)
    return np.where(voiced, train, np.float32(0.0)).astype(np.float32)


def _overlap_add(
    states: Sequence[SynthesisState],
    frames: FloatArray,
    counts: Sequence[int],
    final: Sequence[bool],
) -> list[FloatArray]:
    """Add frames [N, OVERLAP, HOP] to each request's tail and return what is complete."""
    samples = []
    start = 0
    for state, count, last in zip(states, counts, final, strict=True):
        hops = np.zeros((count + OVERLAP - 1, HOP), np.float32)
        hops[: OVERLAP - 1] = state.tail
        for hop in range(OVERLAP):
            hops[hop : hop + count] += frames[start : start + count, hop]
        skipped = min(max(DELAY - state.frames, 0), count)
        state.frames += count
        state.tail = hops[count:].copy()
        if last and state.frames:
            count += DELAY
        samples.append(hops[skipped:count].reshape(-1))
        start += counts[len(samples) - 1]
    return samples
