"""Code2Wav against the reference's decoder: in chunks, in batches, from a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import SpeechParameters, device
from engine.generation import GenerationItem
from pipelines.qwen.codec_stream import Codes, Samples
from pipelines.qwen3_omni.code2wav import Qwen3OmniCode2Wav
from tests.graphs import RepeatRecorder
from tests.synchronisation import DEVICE, no_synchronisation

FRAMES = 60
LARGEST_ERROR = 1e-4
"""Of the reference's largest sample."""


@pytest.fixture(scope="module")
def code2wav(checkpoint: Path) -> Qwen3OmniCode2Wav:
    """The decoder with the checkpoint's weights."""
    return Qwen3OmniCode2Wav.load(checkpoint, torch.float32, torch.device("cpu"))


def random_codes(frames: int, seed: int, code2wav: Qwen3OmniCode2Wav) -> Codes:
    """Codes of an utterance, shape [frames, codebooks]."""
    sizes = code2wav.decoder.sizes
    return np.random.default_rng(seed).integers(0, sizes.codes, (frames, sizes.codebooks))


def expected(reference: Qwen3OmniMoeForConditionalGeneration, codes: Codes) -> Samples:
    """The reference's decode in one piece."""
    with torch.inference_mode():
        made = reference.code2wav(torch.from_numpy(codes.T)[None])
    samples: Samples = made.flatten().numpy()
    return samples


def assert_equal_sound(made: Samples, wanted: Samples) -> None:
    """As many samples, and each within the largest error."""
    assert made.shape == wanted.shape
    assert 0.05 < float(np.abs(wanted).max()) < 1.0, "the sound must be one, and not clipped"
    assert float(np.abs(made - wanted).max()) <= LARGEST_ERROR * float(np.abs(wanted).max())


@pytest.mark.parametrize("size", [1, 4, 25, FRAMES])
def test_chunks_equal_the_reference_in_one_piece(
    code2wav: Qwen3OmniCode2Wav, reference: Qwen3OmniMoeForConditionalGeneration, size: int
) -> None:
    """More frames than the window is wide, in chunks of several sizes."""
    codes = random_codes(FRAMES, 1, code2wav)
    state = code2wav.open(SpeechParameters())
    parts = []
    for start in range(0, FRAMES, size):
        data = tuple(codes[start : start + size])
        (part,) = code2wav.step([GenerationItem(state, data, final=start + size >= FRAMES)])
        parts.append(part)
    assert_equal_sound(np.concatenate(parts), expected(reference, codes))


def stream_a_mixed_batch(
    code2wav: Qwen3OmniCode2Wav, utterances: list[Codes]
) -> list[list[Samples]]:
    """Streams that join at different steps with chunks of different sizes."""
    generator = np.random.default_rng(2)
    states = [code2wav.open(SpeechParameters()) for _ in utterances]
    positions = [0] * len(utterances)
    parts: list[list[Samples]] = [[] for _ in utterances]
    step = 0
    while any(position < len(u) for position, u in zip(positions, utterances, strict=True)):
        items, chosen = [], []
        for index, codes in enumerate(utterances):
            if index > step or positions[index] >= len(codes):
                continue
            stop = positions[index] + int(generator.integers(1, 9))
            data = tuple(codes[positions[index] : stop])
            items.append(GenerationItem(states[index], data, final=stop >= len(codes)))
            chosen.append(index)
            positions[index] = stop
        for index, part in zip(chosen, code2wav.step(items), strict=True):
            parts[index].append(part)
        step += 1
    return parts


@pytest.mark.parametrize("captured", [False, True])
def test_a_mixed_batch_equals_each_alone(
    checkpoint: Path, reference: Qwen3OmniMoeForConditionalGeneration, captured: bool
) -> None:
    """Eight streams, as they are and by graphs of up to six requests and seven frames."""
    code2wav = Qwen3OmniCode2Wav.load(checkpoint, torch.float32, torch.device("cpu"))
    recorder = RepeatRecorder()
    if captured:
        code2wav.capture([2, 7], [1, 3, 6], recorder)
    utterances = [random_codes(20 + 5 * i, i, code2wav) for i in range(8)]
    parts = stream_a_mixed_batch(code2wav, utterances)
    assert bool(sum(recorder.replays)) == captured
    for codes, made in zip(utterances, parts, strict=True):
        assert_equal_sound(np.concatenate(made), expected(reference, codes))


def test_a_step_waits_once_for_each_batch_on_a_gpu(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that begin are a batch of their own."""
    waits: list[torch.device] = []
    monkeypatch.setattr(device, "wait_for", waits.append)
    code2wav = Qwen3OmniCode2Wav.load(checkpoint, torch.float32, DEVICE)
    states = [code2wav.open(SpeechParameters()) for _ in range(3)]
    codes = random_codes(5, 0, code2wav)
    for counts, batches in (((1, 2, 0), 1), ((3, 1, 2), 2), ((4, 4, 4), 1)):
        items = [
            GenerationItem(state, tuple(codes[:count]), False)
            for state, count in zip(states, counts, strict=True)
        ]
        waits.clear()
        with no_synchronisation():
            code2wav.step(items)
        assert waits == [DEVICE] * batches


def test_an_input_that_ends_without_frames_gives_no_samples(code2wav: Qwen3OmniCode2Wav) -> None:
    """The end of a stream may come alone."""
    (part,) = code2wav.step([GenerationItem(code2wav.open(SpeechParameters()), (), final=True)])
    assert len(part) == 0
