"""The streamed decoder against the reference's, in chunks of any size and in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine import SpeechParameters, device
from engine.generation import GenerationItem
from pipelines.qwen.codec_stream import PASS_FRAMES
from pipelines.qwen3_tts.code2wav import Frames, Qwen3TTSCode2Wav
from tests.checkpoints.qwen3_tts import SMALL, Variant
from tests.graphs import RepeatRecorder
from tests.pipelines.qwen3_tts.reference_process import ReferenceProcess
from tests.synchronisation import DEVICE, no_synchronisation

LENGTHS = (60, 37, 80, 1)


@pytest.fixture(scope="module")
def module(checkpoints: dict[Variant, Path]) -> Qwen3TTSCode2Wav:
    folder = checkpoints[Variant.CUSTOM_VOICE] / "speech_tokenizer"
    return Qwen3TTSCode2Wav.load(folder, torch.float32, torch.device("cpu"))


@pytest.fixture(scope="module")
def codes() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.integers(0, SMALL.codes, (n, SMALL.codebooks)) for n in LENGTHS]


@pytest.fixture(scope="module")
def expected(
    reference: ReferenceProcess, checkpoints: dict[Variant, Path], codes: list[np.ndarray]
) -> list[np.ndarray]:
    return reference.decode(checkpoints[Variant.CUSTOM_VOICE], codes)


def streamed(
    module: Qwen3TTSCode2Wav, codes: list[np.ndarray], sizes: list[int]
) -> list[np.ndarray]:
    states = [module.open(SpeechParameters()) for _ in codes]
    heard: list[list[np.ndarray]] = [[] for _ in codes]
    at = [0] * len(codes)
    while any(start < len(part) for start, part in zip(at, codes, strict=True)):
        items = []
        for index, (part, size) in enumerate(zip(codes, sizes, strict=True)):
            chunk = part[at[index] : at[index] + size]
            at[index] += size
            # One input a frame, as they come from the Talker.
            data = tuple(Frames(frame[None]) for frame in chunk)
            items.append(GenerationItem(states[index], data, at[index] >= len(part)))
        for sound, made in zip(heard, module.step(items), strict=True):
            sound.append(made)
    return [np.concatenate(sound) for sound in heard]


def assert_close(made: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for sound, wanted in zip(made, expected, strict=True):
        assert sound.shape == wanted.shape
        assert sound.dtype == np.float32
        assert np.abs(wanted).max() < 1  # nothing is hidden by clipping
        assert np.abs(sound - wanted).max() < 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("size", [1, 4, 25])
def test_invariant_09_chunks_equal_the_reference_in_one_piece(
    module: Qwen3TTSCode2Wav, codes: list[np.ndarray], expected: list[np.ndarray], size: int
) -> None:
    assert_close(streamed(module, codes[:1], [size]), expected[:1])


@pytest.mark.parametrize("sizes", [[1, 4, 25, 7], [3, 3, 3, 3], [60, 1, 2, 1]], ids=str)
def test_batches_of_mixed_sizes_equal_the_reference(
    module: Qwen3TTSCode2Wav,
    codes: list[np.ndarray],
    expected: list[np.ndarray],
    sizes: list[int],
) -> None:
    assert_close(streamed(module, codes, sizes), expected)


def test_a_processor_decodes_no_more_at_once_than_its_caches_hold(
    module: Qwen3TTSCode2Wav, codes: list[np.ndarray], expected: list[np.ndarray]
) -> None:
    shapes: list[tuple[int, int]] = []
    hook = module.decoder.register_forward_hook(
        lambda _, inputs, made: shapes.append((len(inputs[0]), inputs[0].shape[2]))
    )
    made = streamed(module, [codes[0], codes[2]] * 8, [9, 13] * 8)
    hook.remove()
    assert_close(made, [expected[0], expected[2]] * 8)
    assert {requests * frames for requests, frames in shapes} <= set(range(PASS_FRAMES + 1))
    assert (3, 9) in shapes
    assert (2, 13) in shapes


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [1, 4, 25, 7], [3, 3, 3, 3]], ids=str)
def test_graphs_equal_the_reference(
    checkpoints: dict[Variant, Path],
    codes: list[np.ndarray],
    expected: list[np.ndarray],
    sizes: list[int],
) -> None:
    """Captured for up to 8 frames and 3 requests; the rest runs as it is."""
    folder = checkpoints[Variant.CUSTOM_VOICE] / "speech_tokenizer"
    module = Qwen3TTSCode2Wav.load(folder, torch.float32, torch.device("cpu"))
    recorder = RepeatRecorder()
    module.capture([2, 4, 8], [1, 3], recorder)
    assert len(recorder.graphs) == 6
    assert_close(streamed(module, codes[:3], sizes[:3]), expected[:3])
    assert sum(recorder.replays) > 3
    assert_close(streamed(module, codes, sizes), expected)


def test_a_step_waits_once_for_a_gpu(
    checkpoints: dict[Variant, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[torch.device] = []
    monkeypatch.setattr(device, "wait_for", waits.append)
    folder = checkpoints[Variant.CUSTOM_VOICE] / "speech_tokenizer"
    module = Qwen3TTSCode2Wav.load(folder, torch.float32, DEVICE)
    states = [module.open(SpeechParameters()) for _ in range(3)]
    codes = np.zeros((5, SMALL.codebooks), np.int64)
    for counts in ((1, 1, 1), (2, 5, 1), (1, 1, 3)):
        items = [
            GenerationItem(s, (Frames(codes[:n]),), False)
            for s, n in zip(states, counts, strict=True)
        ]
        waits.clear()
        with no_synchronisation():
            made = module.step(items)
        assert waits == [DEVICE]
        assert [len(sound) // module.unit_samples for sound in made] == list(counts)


def test_silent_frames_are_context_and_nothing_else(
    module: Qwen3TTSCode2Wav, codes: list[np.ndarray], expected: list[np.ndarray]
) -> None:
    state = module.open(SpeechParameters())
    first = (Frames(codes[0][:20], silent=True), Frames(codes[0][20:21]))
    heard = [*module.step([GenerationItem(state, first, False)])]
    heard += module.step([GenerationItem(state, (Frames(codes[0][21:]),), True)])
    assert_close([np.concatenate(heard)], [expected[0][20 * module.unit_samples :]])


def test_a_step_without_frames_makes_no_sound(module: Qwen3TTSCode2Wav) -> None:
    item = GenerationItem(module.open(SpeechParameters()), (), True)
    assert [len(sound) for sound in module.step([item])] == [0]


def test_a_request_keeps_its_own_state_alone(
    module: Qwen3TTSCode2Wav, codes: list[np.ndarray]
) -> None:
    """What is kept does not hold the memory of the batch it was made in."""
    states = [module.open(SpeechParameters()) for _ in range(3)]
    module.step([GenerationItem(s, (Frames(codes[0][:2]),), False) for s in states])
    for state in states:
        width = module.decoder.state_width
        assert state.row.untyped_storage().nbytes() == width * state.row.element_size()
