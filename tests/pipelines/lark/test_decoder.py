"""The streaming decoder: exactness, batches, edges and the shipped weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine import device
from pipelines.lark.codec import ENCODING_SIZE, FEATURE_SIZE, CodecState
from pipelines.lark.decoder import Code2WavDecoder, Decoder, DecoderConfig, load_code2wav
from pipelines.lark.spectrum import HOP
from tests.synchronisation import DEVICE, no_synchronisation

WEIGHTS = Path(__file__).parents[3] / "pipelines" / "lark" / "weights"
RIGHTS = ((3, 0, 0, 1, 2), (0, 3, 0, 3, 0), (3, 0, 0, 0, 0))


def make_decoder(right: tuple[int, ...]) -> Code2WavDecoder:
    torch.manual_seed(0)
    return Code2WavDecoder(Decoder(DecoderConfig(width=16, inner=32, right=right)))


def make_features(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, FEATURE_SIZE, generator=generator)
    f0 = 150 + 100 * torch.rand(count, generator=generator)
    features[:, ENCODING_SIZE] = torch.log1p(f0) / 5
    return features


def one_shot(decoder: Code2WavDecoder, features: torch.Tensor, seed: int = 0) -> np.ndarray:
    return decoder.step([decoder.new_state(seed)], [features], [True])[0]


@pytest.mark.parametrize("right", RIGHTS)
def test_a_stream_computes_the_spectra_of_the_whole_network(right: tuple[int, ...]) -> None:
    decoder, features = make_decoder(right), make_features(30)
    hidden: list[torch.Tensor] = []
    decoder.network.norm.register_forward_hook(lambda *values: hidden.append(values[2]))
    decoder.network(features[None])
    state = decoder.new_state()
    for start in range(0, 30, 4):
        decoder.step([state], [features[start : start + 4]], [False])
    decoder.step([state], [features[:0]], [True])
    assert torch.allclose(torch.cat(hidden[1:]), hidden[0][0], atol=1e-4)


def test_a_step_waits_once_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[torch.device] = []
    monkeypatch.setattr(device, "wait_for", waits.append)
    torch.manual_seed(0)
    network = Decoder(DecoderConfig(width=16, inner=32, right=RIGHTS[0]))
    decoder = Code2WavDecoder(network, "meta")
    states = [decoder.new_state() for _ in range(2)]
    for counts, final in (((9, 12), False), ((4, 1), False), ((0, 3), True)):
        features = [make_features(count) for count in counts]
        waits.clear()
        with no_synchronisation():
            decoder.step(states, features, [final] * 2)
        assert waits == [DEVICE]


@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize("chunk", [1, 2, 7, 19, 64])
def test_invariant_9_streamed_samples_equal_the_one_shot_decode(
    right: tuple[int, ...], chunk: int
) -> None:
    decoder, features = make_decoder(right), make_features(50)
    expected, state = one_shot(decoder, features), decoder.new_state()
    parts = []
    for start in range(0, 50, chunk):
        last = start + chunk >= 50
        parts += decoder.step([state], [features[start : start + chunk]], [last])
    made = np.concatenate(parts)
    assert made.shape == expected.shape == (50 * HOP,)
    assert np.abs(made - expected).max() < 1e-4


def test_invariant_10_a_batch_of_any_company_does_not_change_a_request() -> None:
    decoder, source = make_decoder((3, 0, 1, 0, 2)), np.random.default_rng(5)
    features = [make_features(n, seed=n) for n in (40, 1, 23, 3)]
    states = [decoder.new_state(seed) for seed in range(4)]
    made: list[list[np.ndarray]] = [[] for _ in features]
    position, live = [0] * 4, {0, 1, 2, 3}
    while live:
        chosen = sorted(live if len(live) == 1 else source.permutation(sorted(live))[:2])
        sizes = [int(source.integers(0, 12)) for _ in chosen]
        parts = [
            features[i][position[i] : position[i] + n] for i, n in zip(chosen, sizes, strict=True)
        ]
        final = [position[i] + n >= len(features[i]) for i, n in zip(chosen, sizes, strict=True)]
        results = decoder.step([states[i] for i in chosen], parts, final)
        for index, size, last, result in zip(chosen, sizes, final, results, strict=True):
            made[index].append(result)
            position[index] += size
            live -= {index} if last else set()
    for index, part in enumerate(features):
        expected = one_shot(decoder, part, seed=index)
        assert np.abs(np.concatenate(made[index]) - expected).max() < 1e-4


def test_only_the_lookahead_is_held_back() -> None:
    decoder = make_decoder((3, 0, 0, 1, 2))
    made = decoder.step([decoder.new_state()], [make_features(30)], [False])[0]
    assert len(made) == (30 - decoder.config.lookahead - 2) * HOP


def test_an_empty_request_ends_without_samples() -> None:
    decoder = make_decoder((3, 0, 0))
    assert len(one_shot(decoder, make_features(0))) == 0


def test_a_finished_request_takes_no_more() -> None:
    decoder = make_decoder((3, 0, 0))
    state = decoder.new_state()
    decoder.step([state], [make_features(4)], [True])
    with pytest.raises(ValueError, match="finished"):
        decoder.step([state], [make_features(4)], [False])


@pytest.mark.parametrize("chunk", [3, 20, 41])
def test_invariant_9_holds_for_the_shipped_weights(chunk: int) -> None:
    shipped = load_code2wav(WEIGHTS)
    source = np.random.default_rng(6)
    codes = np.stack([source.integers(0, n, 25) for n in (6, 512, 256, 512, 512)], 1)
    features = torch.from_numpy(shipped.codec.features(CodecState(), codes).features)
    expected, state = one_shot(shipped.decoder, features), shipped.decoder.new_state()
    parts = [
        shipped.decoder.step([state], [features[i : i + chunk]], [False])[0]
        for i in range(0, len(features), chunk)
    ]
    parts += shipped.decoder.step([state], [features[:0]], [True])
    made = np.concatenate(parts)
    assert made.shape == expected.shape
    assert np.abs(made - expected).max() < 1e-4
    assert np.abs(expected).max() > 0.01
    assert shipped.decoder.config.lookahead <= 6
