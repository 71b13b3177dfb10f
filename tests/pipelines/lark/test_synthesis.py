"""The source-filter synthesis: splits, pitch, noise and formants."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.lark.spectrum import BINS, BRANCHES, HOP, SAMPLE_RATE
from pipelines.lark.synthesis import SynthesisState, synthesise

SILENT = -20.0


def spectra_of(count: int, harmonic: float = SILENT, noise: float = SILENT) -> np.ndarray:
    spectra = np.full((count, BRANCHES, BINS), SILENT, np.float32)
    spectra[:, 1] = spectra[:, 4] = 0
    spectra[:, 0], spectra[:, 2] = harmonic, noise
    return spectra.reshape(count, BRANCHES * BINS)


def whole(state: SynthesisState, spectra: np.ndarray, f0: np.ndarray) -> np.ndarray:
    return synthesise([state], spectra, [len(spectra)], [f0], [True])[0]


def chunked(
    state: SynthesisState, spectra: np.ndarray, f0: np.ndarray, chunk: int, ahead: int = 6
) -> np.ndarray:
    """Feed f0 `ahead` frames before the spectra, as the decoder does."""
    parts = []
    for start in range(0, len(f0), chunk):
        end = min(start + chunk, len(f0))
        now = spectra[max(start - ahead, 0) : max(end - ahead, 0)]
        parts += synthesise([state], now, [len(now)], [f0[start:end]], [False])
    rest = spectra[max(len(f0) - ahead, 0) :]
    return np.concatenate(parts + synthesise([state], rest, [len(rest)], [f0[:0]], [True]))


@pytest.mark.parametrize("chunk", [1, 2, 5, 16, 100])
def test_invariant_9_chunked_samples_equal_whole_ones(chunk: int) -> None:
    source = np.random.default_rng(2)
    spectra = source.normal(-1, 1, (60, BRANCHES * BINS)).astype(np.float32)
    f0 = np.where(source.random(60) > 0.2, 200 + 30 * source.random(60), 0).astype(np.float32)
    expected = whole(SynthesisState(seed=3, formant_scale=1.1), spectra, f0)
    made = chunked(SynthesisState(seed=3, formant_scale=1.1), spectra, f0, chunk)
    assert made.shape == expected.shape == (60 * HOP,)
    assert np.abs(made - expected).max() < 1e-4


def test_requests_of_one_call_do_not_mix() -> None:
    source = np.random.default_rng(4)
    counts = [5, 0, 20]
    spectra = [source.normal(-1, 1, (n, BRANCHES * BINS)).astype(np.float32) for n in counts]
    f0 = [np.full(n, 150 + 20 * i, np.float32) for i, n in enumerate(counts)]
    together = synthesise(
        [SynthesisState(seed=i) for i in range(3)], np.concatenate(spectra), counts, f0, [True] * 3
    )
    for index in range(3):
        alone = whole(SynthesisState(seed=index), spectra[index], f0[index])
        assert np.abs(together[index] - alone).max(initial=0) < 1e-5
        assert len(alone) == counts[index] * HOP


@pytest.mark.parametrize(("f0", "scale"), [(120.0, 1.0), (220.0, 1.0), (220.0, 0.6), (180.0, 1.5)])
def test_the_pulse_train_has_the_pitch_that_was_asked_for(f0: float, scale: float) -> None:
    state = SynthesisState(f0_scale=scale)
    samples = whole(state, spectra_of(80, harmonic=-3.0), np.full(80, f0, np.float32))
    middle = samples[20 * HOP : 60 * HOP] * np.hanning(40 * HOP)
    peaks = np.abs(np.fft.rfft(middle, 1 << 18))
    low = peaks[: int(1.5 * f0 * scale * (1 << 18) / SAMPLE_RATE)]
    assert np.argmax(low) * SAMPLE_RATE / (1 << 18) == pytest.approx(f0 * scale, abs=1.0)


def test_unvoiced_frames_have_no_pulses() -> None:
    samples = whole(SynthesisState(), spectra_of(20, harmonic=0.0), np.zeros(20, np.float32))
    assert np.abs(samples).max() < 1e-6


def test_the_seed_decides_the_noise() -> None:
    spectra, f0 = spectra_of(20, noise=-2.0), np.zeros(20, np.float32)
    first = whole(SynthesisState(seed=1), spectra, f0)
    assert np.array_equal(first, whole(SynthesisState(seed=1), spectra, f0))
    assert not np.array_equal(first, whole(SynthesisState(seed=2), spectra, f0))


def test_formants_move_with_their_scale() -> None:
    spectra = spectra_of(40).reshape(40, BRANCHES, BINS)
    spectra[:, 2] = -8 + 6 * np.exp(-(((np.arange(BINS) - 100) / 20) ** 2))
    flat = spectra.reshape(40, -1)
    f0 = np.zeros(40, np.float32)

    def centre(scale: float) -> float:
        power = np.abs(np.fft.rfft(whole(SynthesisState(formant_scale=scale), flat, f0))) ** 2
        return float((np.arange(len(power)) * power).sum() / power.sum())

    assert centre(1.2) / centre(1.0) == pytest.approx(1.2, rel=0.05)
    assert centre(0.85) / centre(1.0) == pytest.approx(0.85, rel=0.05)


def test_f0_must_run_ahead_of_the_spectra() -> None:
    f0 = np.full(10, 200, np.float32)
    with pytest.raises(ValueError, match="must run ahead"):
        synthesise([SynthesisState()], spectra_of(10), [10], [f0], [False])


def test_a_request_that_ends_without_a_frame_has_no_samples() -> None:
    assert len(whole(SynthesisState(), spectra_of(0), np.zeros(0, np.float32))) == 0


def test_a_variant_keeps_the_loudness_and_the_neutral_one_changes_nothing() -> None:
    spectra, f0 = spectra_of(60, harmonic=-3.0), np.full(60, 200, np.float32)
    plain = whole(SynthesisState(), spectra, f0)
    for scale in (0.6, 0.82, 1.15):
        varied = whole(SynthesisState(f0_scale=scale), spectra, f0)
        assert np.std(varied) == pytest.approx(np.std(plain), rel=0.15)


def test_a_variant_reads_gains_only_at_harmonics() -> None:
    spectra = spectra_of(60).reshape(60, BRANCHES, BINS)
    spectra[:, 0, 10::10] = -3.0  # the harmonics of 200 Hz; nothing is meant between them
    flat, f0 = spectra.reshape(60, -1), np.full(60, 200, np.float32)
    smooth = whole(SynthesisState(f0_scale=0.7), spectra_of(60, harmonic=-3.0), f0)
    assert np.allclose(whole(SynthesisState(f0_scale=0.7), flat, f0), smooth, atol=1e-5)
