"""The codec: lengths, splits, speeds and contours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipelines.lark.codec import (
    ENCODING_SIZE,
    FEATURE_SIZE,
    POINTS,
    Codebooks,
    Codec,
    CodecState,
    averaging,
    frame_f0,
    interpolation,
)


@pytest.fixture
def codebooks() -> Codebooks:
    source = np.random.default_rng(0)
    pitch = source.normal(size=(512, 2 * POINTS)).astype(np.float32)
    pitch[:, :POINTS] = source.random((512, 1)) > 0.3
    pitch[:, POINTS:] *= pitch[:, :POINTS]
    return Codebooks(
        pitch=pitch,
        energy=source.normal(size=(256, POINTS)).astype(np.float32),
        encoding=source.normal(size=(2, 512, ENCODING_SIZE)).astype(np.float32),
        pitch_mean=5.26,
        pitch_deviation=0.2,
        glide=3,
    )


def random_codes(count: int, seed: int = 1) -> np.ndarray:
    source = np.random.default_rng(seed)
    sizes = (22, 512, 256, 512, 512)
    return np.stack([source.integers(0, size, count) for size in sizes], 1)


def test_a_phoneme_lasts_two_frames_a_unit(codebooks: Codebooks) -> None:
    codes = random_codes(30)
    made = Codec(codebooks).features(CodecState(), codes)
    assert made.frames.tolist() == (2 * (codes[:, 0] + 1)).tolist()
    assert made.features.shape == (made.frames.sum(), FEATURE_SIZE)
    assert np.isfinite(made.features).all()


@pytest.mark.parametrize("chunk", [1, 3, 10])
@pytest.mark.parametrize("speed", [0.25, 0.9, 1.0, 1.7, 4.0])
def test_invariant_9_chunked_features_equal_whole_ones(
    codebooks: Codebooks, chunk: int, speed: float
) -> None:
    codes, codec = random_codes(40), Codec(codebooks)
    whole = codec.features(CodecState(speed), codes)
    state = CodecState(speed)
    parts = [codec.features(state, codes[i : i + chunk]) for i in range(0, len(codes), chunk)]
    assert np.array_equal(np.concatenate([part.features for part in parts]), whole.features)
    assert np.array_equal(np.concatenate([part.frames for part in parts]), whole.frames)


@pytest.mark.parametrize("speed", [0.25, 0.6, 1.3, 4.0])
def test_speed_changes_the_length_by_its_factor(codebooks: Codebooks, speed: float) -> None:
    codes = random_codes(200)
    made = Codec(codebooks).features(CodecState(speed), codes)
    assert abs(len(made.features) - 2 * (codes[:, 0] + 1).sum() / speed) <= 1


@pytest.mark.parametrize("speed", [0.2, 4.1, 0.0, -1.0, float("nan")])
def test_a_speed_out_of_range_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="Speed must lie between"):
        CodecState(speed)


def test_the_tempo_scales_every_speed(codebooks: Codebooks) -> None:
    codes = random_codes(200)
    slower = Codec(replace(codebooks, tempo=0.95))
    made = slower.features(CodecState(2.0), codes)
    assert abs(len(made.features) - 2 * (codes[:, 0] + 1).sum() / 1.9) <= 2


def test_the_energy_range_widens_energies_about_their_mean(codebooks: Codebooks) -> None:
    codes = random_codes(40)
    plain = Codec(codebooks).features(CodecState(), codes).features
    wide = Codec(replace(codebooks, energy_range=1.1)).features(CodecState(), codes).features
    middle = codebooks.energy.mean() / 5
    np.testing.assert_allclose(wide[:, -1] - middle, 1.1 * (plain[:, -1] - middle), atol=1e-5)
    np.testing.assert_array_equal(wide[:, :-1], plain[:, :-1])


@pytest.mark.parametrize(("speed", "least"), [(1.5, 2), (2.0, 2), (3.0, 1), (4.0, 1)])
def test_fast_speech_keeps_every_phoneme_and_saves_on_longer_ones(
    codebooks: Codebooks, speed: float, least: int
) -> None:
    codes = random_codes(200)
    codes[::2, 0] = 0
    made = Codec(codebooks).features(CodecState(speed), codes)
    assert made.frames.min() == least
    assert abs(len(made.features) - 2 * (codes[:, 0] + 1).sum() / speed) <= 17


def test_no_phonemes_make_no_frames(codebooks: Codebooks) -> None:
    made = Codec(codebooks).features(CodecState(), np.zeros((0, 5), np.int64))
    assert made.features.shape == (0, FEATURE_SIZE)


def test_pitch_glides_over_a_border_and_never_into_an_unvoiced_phoneme() -> None:
    pitch = np.zeros((512, 2 * POINTS), np.float32)
    pitch[0] = [1, 1, 1, 1, 0, 0, 0, 0]
    pitch[1] = [1, 1, 1, 1, 2, 2, 2, 2]
    books = Codebooks(
        pitch=pitch,
        energy=np.zeros((256, POINTS), np.float32),
        encoding=np.zeros((2, 512, ENCODING_SIZE), np.float32),
        pitch_mean=5.0,
        pitch_deviation=0.2,
        glide=3,
    )
    codes = np.array([[4, 0, 0, 0, 0], [4, 1, 0, 0, 0], [4, 2, 0, 0, 0]])
    f0 = frame_f0(Codec(books).features(CodecState(), codes).features)
    low, high = np.exp(5.0), np.exp(5.4)
    assert np.allclose(f0[:10], low, rtol=1e-4)
    assert (np.diff(f0[9:13]) > 0).all()
    assert np.allclose(f0[13:20], high, rtol=1e-4)
    assert np.allclose(f0[20:], 0, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 42])
def test_contour_weights_sum_to_one(count: int) -> None:
    assert np.allclose(interpolation(count).sum(1), 1)
    assert np.allclose(averaging(count).sum(1), 1)
    assert interpolation(count).shape == (count, POINTS)
    assert averaging(count).shape == (POINTS, count)
