"""Codes to samples: equal to the reference's, whole and streamed, alone and in a batch."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Qwen2_5OmniForConditionalGeneration

from engine import SpeechParameters, device
from engine.adapter import GenerationInput
from engine.deploy_config import (
    ChunkDeployment,
    DiffusionDeployment,
    StageDeployment,
    StepCacheDeployment,
)
from engine.diffusion import DiffusionReplica
from engine.diffusion_module import DiffusionInput
from engine.generation import GenerationItem, GenerationReplica
from pipelines.qwen2_5_omni import token2mel as token2mel_module
from pipelines.qwen2_5_omni.checkpoint import load_denoiser, load_speakers, load_vocoder
from pipelines.qwen2_5_omni.denoiser import Denoiser
from pipelines.qwen2_5_omni.flow import FlowSettings, receptive_blocks
from pipelines.qwen2_5_omni.token2mel import Token2Mel
from pipelines.qwen2_5_omni.vocoder import Vocoder
from tests.checkpoints.qwen2_5_omni import LAST_CODE
from tests.graphs import RepeatRecorder
from tests.synchronisation import DEVICE, no_synchronisation

BLOCK = 4
"""Codes in a block of the tiny checkpoint."""

WHOLE = DiffusionDeployment(look_ahead_blocks=None)
STREAMED = DiffusionDeployment(first_blocks=2, maximum_blocks=4, growth=1.5)
SHORT = FlowSettings(time_points=2)
"""One step of the solver: its receptive field is small enough to look ahead over all of it."""


@pytest.fixture(scope="module")
def modules(checkpoint: Path) -> Any:
    torch.set_num_threads(1)
    return load_denoiser(checkpoint), load_speakers(checkpoint), load_vocoder(checkpoint)


def token2mel(
    modules: Any,
    diffusion: DiffusionDeployment,
    settings: FlowSettings | None = None,
    recorder: RepeatRecorder | None = None,
) -> DiffusionReplica:
    """A replica; with a recorder, evaluations of 3, 7 and 20 blocks are captured."""
    model, speakers, _ = modules
    settings = settings or FlowSettings()
    module = Token2Mel(
        Denoiser(model, settings), speakers, settings, compares=diffusion.cache is not None
    )
    if recorder is not None:
        module.capture([3, 7, 20], recorder)
    return DiffusionReplica.of(module, StageDeployment(input_limit=512, diffusion=diffusion))


def vocoder(modules: Any, first: int = 8, maximum: int = 96) -> GenerationReplica:
    chunk = ChunkDeployment(first_units=first, maximum_units=maximum)
    deployment = StageDeployment(input_limit=1024, chunk=chunk)
    return GenerationReplica.of(Vocoder(modules[2]), deployment)


def make_codes(length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, LAST_CODE + 1, length)


def mels(
    replica: DiffusionReplica, requests: dict[str, np.ndarray], arrive: int | None = None
) -> dict[str, torch.Tensor]:
    """The frames of requests; `arrive` codes at a time, with steps in between, or all at once."""
    results: dict[str, list[torch.Tensor]] = {name: [] for name in requests}

    def run() -> None:
        while replica.ready({}):
            for output in replica.step({}):
                if output.output is not None:
                    results[output.request_id].append(output.output.frames)

    for index, name in enumerate(requests):
        replica.add(name, SpeechParameters(seed=index, voice=("Chelsie", "Ethan")[index % 2]))
    longest = max(len(codes) for codes in requests.values())
    for start in range(0, longest, arrive or longest):
        for name, codes in requests.items():
            piece = codes[start : start + (arrive or longest)]
            if len(piece):
                replica.offer(name, DiffusionInput(len(piece), piece))
            if name in replica.requests and start + (arrive or longest) >= len(codes):
                replica.close_input(name)
        run()
    assert replica.requests == {}
    return {name: torch.cat(frames) for name, frames in results.items()}


def sound(replica: GenerationReplica, frames: torch.Tensor, sizes: list[int]) -> np.ndarray:
    replica.add("a", SpeechParameters())
    parts = []
    start = turn = 0
    while start < len(frames):
        piece = frames[start : start + sizes[turn % len(sizes)]]
        replica.offer("a", GenerationInput(len(piece), piece))
        start, turn = start + len(piece), turn + 1
        parts += [o.output.samples for o in replica.step({"a": 0.0}) if o.output is not None]
    replica.close_input("a")
    while replica.requests:
        parts += [o.output.samples for o in replica.step({}) if o.output is not None]
    return np.concatenate(parts)


def reference_mel(
    reference: Qwen2_5OmniForConditionalGeneration,
    codes: np.ndarray,
    seed: int,
    voice: str,
    settings: FlowSettings | None = None,
) -> torch.Tensor:
    speaker = reference.speaker_map[voice]
    torch.manual_seed(seed)
    return reference.token2wav.code2wav_dit_model.sample(
        speaker["cond"],
        speaker["ref_mel"],
        torch.tensor(codes)[None],
        num_steps=(settings or FlowSettings()).time_points,
    )[0].T


def relative(ours: Any, theirs: Any) -> float:
    ours, theirs = torch.as_tensor(ours).detach(), torch.as_tensor(theirs).detach()
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max() / theirs.abs().max())


@pytest.mark.parametrize("length", [1, 3, 4, 10, 33])
def test_the_whole_waveform_equals_the_references(
    modules: Any, reference: Qwen2_5OmniForConditionalGeneration, length: int
) -> None:
    codes = make_codes(length, length)
    (frames,) = mels(token2mel(modules, WHOLE), {"a": codes}).values()
    samples = sound(vocoder(modules), frames, [len(frames)])
    speaker = reference.speaker_map["Chelsie"]
    torch.manual_seed(0)
    expected = reference.token2wav(
        torch.tensor(codes)[None], conditioning=speaker["cond"], reference_mel=speaker["ref_mel"]
    )
    assert len(samples) == 480 * length
    assert expected.abs().max() > 0.1
    assert relative(samples, expected.reshape(-1)) < 1e-4


@pytest.mark.parametrize("diffusion", [WHOLE, STREAMED], ids=["whole", "streamed"])
def test_invariant_10_requests_of_all_lengths_share_batches_and_do_not_notice(
    modules: Any, diffusion: DiffusionDeployment
) -> None:
    requests = {str(index): make_codes(5 + 9 * index, index) for index in range(8)}
    together = mels(token2mel(modules, diffusion), requests, arrive=7)
    for index, (name, codes) in enumerate(requests.items()):
        replica = token2mel(modules, diffusion)
        replica.add(name, SpeechParameters(seed=index, voice=("Chelsie", "Ethan")[index % 2]))
        replica.offer(name, DiffusionInput(len(codes), codes))
        replica.close_input(name)
        parts = []
        while replica.requests:
            parts += [o.output.frames for o in replica.step({}) if o.output is not None]
        assert relative(together[name], torch.cat(parts)) < 1e-5


@pytest.mark.parametrize("diffusion", [WHOLE, STREAMED], ids=["whole", "streamed"])
def test_graphs_equal_what_they_were_captured_of(
    modules: Any, diffusion: DiffusionDeployment
) -> None:
    requests = {str(index): make_codes(5 + 9 * index, index) for index in range(5)}
    recorder = RepeatRecorder()
    captured = mels(token2mel(modules, diffusion, SHORT, recorder), requests, arrive=7)
    assert sum(recorder.replays) > 0
    for name, frames in mels(token2mel(modules, diffusion, SHORT), requests, arrive=7).items():
        assert relative(captured[name], frames) < 1e-5


def test_an_evaluation_never_waits_for_a_gpu_and_a_segments_end_once(
    modules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[torch.device] = []
    monkeypatch.setattr(device, "wait_for", waits.append)
    # Nothing has a value here, so that nothing would be finite.
    monkeypatch.setattr(
        token2mel_module,
        "to_host",
        lambda *found: tuple(torch.ones_like(one) for one in device.to_host(*found)),
    )
    on_gpu = (copy.deepcopy(modules[0]).to(DEVICE), modules[1], None)
    replica = token2mel(on_gpu, STREAMED, SHORT)
    for name, length in (("a", 30), ("b", 20), ("c", 13)):
        replica.add(name, SpeechParameters(seed=0))
        replica.offer(name, DiffusionInput(length, make_codes(length, 0)))
    segment_ends = 0
    while replica.ready({}):
        waits.clear()
        with no_synchronisation():
            outputs = replica.step({})
        assert waits == [DEVICE] * (1 if outputs else 0)
        segment_ends += bool(outputs)
    assert segment_ends > 1


def test_a_batch_equals_the_reference_one_by_one(
    modules: Any, reference: Qwen2_5OmniForConditionalGeneration
) -> None:
    requests = {str(index): make_codes(5 + 9 * index, index) for index in range(8)}
    together = mels(token2mel(modules, WHOLE), requests)
    for index, (name, codes) in enumerate(requests.items()):
        voice = ("Chelsie", "Ethan")[index % 2]
        assert relative(together[name], reference_mel(reference, codes, index, voice)) < 1e-4


@pytest.mark.parametrize("arrive", [1, 4, 25])
def test_invariant_09_streamed_frames_do_not_depend_on_how_codes_arrive(
    modules: Any, arrive: int
) -> None:
    codes = {"a": make_codes(61, 1)}
    whole = mels(token2mel(modules, STREAMED), codes)["a"]
    assert relative(mels(token2mel(modules, STREAMED), codes, arrive)["a"], whole) == 0.0
    assert len(whole) == 122


def test_looking_ahead_over_the_receptive_field_gives_the_references_frames(
    modules: Any, reference: Qwen2_5OmniForConditionalGeneration
) -> None:
    network = Denoiser(modules[0], SHORT).network
    layers = network.look_backward_layers, network.look_ahead_layers
    assert layers == (2, 1)
    _, ahead = receptive_blocks(*layers, SHORT.evaluations)
    assert ahead == 4
    codes = make_codes(57, 2)
    expected = reference_mel(reference, codes, 0, "Chelsie", SHORT)
    errors = []
    for look_ahead in (0, 1, 2, ahead):
        diffusion = DiffusionDeployment(
            first_blocks=1, maximum_blocks=3, look_ahead_blocks=look_ahead
        )
        ours = mels(token2mel(modules, diffusion, SHORT), {"a": codes}, arrive=5)["a"]
        errors.append(relative(ours, expected))
    assert errors[-1] < 1e-4
    assert errors[0] > errors[1] > errors[2] > errors[3]


def test_what_was_kept_of_the_segment_before_is_what_looking_back_would_see(
    modules: Any, reference: Qwen2_5OmniForConditionalGeneration
) -> None:
    """Of the first segments only; they end before the look-ahead of the last is cut."""
    codes = make_codes(57, 3)
    _, ahead = receptive_blocks(2, 1, SHORT.evaluations)
    diffusion = DiffusionDeployment(first_blocks=1, maximum_blocks=1, look_ahead_blocks=ahead)
    replica = token2mel(modules, diffusion, SHORT)
    replica.add("a", SpeechParameters(seed=0))
    replica.offer("a", DiffusionInput(57, codes))
    parts = []
    while len(parts) < 5:
        parts += [o.output.frames for o in replica.step({}) if o.output is not None]
    expected = reference_mel(reference, codes, 0, "Chelsie", SHORT)
    assert [len(part) for part in parts] == [2 * BLOCK] * 5
    assert relative(torch.cat(parts), expected[: 10 * BLOCK]) < 1e-4


@pytest.mark.parametrize("sizes", [[1], [4], [25], [2, 60, 9]])
def test_invariant_09_the_vocoder_streams_what_it_decodes_at_once(
    modules: Any, reference: Qwen2_5OmniForConditionalGeneration, sizes: list[int]
) -> None:
    frames = torch.randn(130, 16, generator=torch.Generator().manual_seed(1)) - 3
    expected = reference.token2wav.code2wav_bigvgan_model(frames.T[None])
    assert relative(sound(vocoder(modules), frames, sizes), expected) < 1e-5


def test_the_vocoder_needs_no_less_context_than_it_takes(modules: Any) -> None:
    """A frame's influence ends within the context, and not long before it."""
    module = Vocoder(modules[2])
    frames = torch.zeros(3 * module.context, 16)
    other = frames.clone()
    other[module.context + module.context // 2] += 5.0
    made, differs = (module.wave(mel[None])[0][0].detach().numpy() for mel in (frames, other))
    changed = np.flatnonzero(made != differs)
    before = module.context * 1.5 - changed[0] / 240
    behind = changed[-1] / 240 - module.context * 1.5
    assert 0.5 * module.context < max(before, behind) <= module.context


def test_graphs_of_the_vocoder_equal_the_reference(
    modules: Any, reference: Qwen2_5OmniForConditionalGeneration
) -> None:
    frames = torch.randn(130, 16, generator=torch.Generator().manual_seed(1)) - 3
    expected = reference.token2wav.code2wav_bigvgan_model(frames.T[None])
    recorder = RepeatRecorder()
    replica = vocoder(modules)
    assert isinstance(replica.module, Vocoder)
    replica.module.capture([8, 40], [1, 2], recorder)
    assert relative(sound(replica, frames, [9, 4, 30]), expected) < 1e-5
    assert sum(recorder.replays) > 2


def test_a_step_of_the_vocoder_waits_once_for_a_gpu(
    modules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[torch.device] = []
    monkeypatch.setattr(device, "wait_for", waits.append)
    module = Vocoder(copy.deepcopy(modules[2]).to(DEVICE))
    states = [module.open(SpeechParameters()) for _ in range(3)]
    for counts, final in (((100, 120, 90), False), ((9, 30, 5), False), ((2, 7, 0), True)):
        frames = [(torch.zeros(n, 16, device=DEVICE),) if n else () for n in counts]
        items = [GenerationItem(s, f, final) for s, f in zip(states, frames, strict=True)]
        waits.clear()
        with no_synchronisation():
            made = module.step(items)
        assert waits == [DEVICE]
        assert all(len(samples) > 0 for samples in made)


def test_requests_of_the_vocoder_share_batches_and_do_not_notice(modules: Any) -> None:
    generator = torch.Generator().manual_seed(2)
    spectra = {str(i): torch.randn(30 + 17 * i, 16, generator=generator) - 3 for i in range(6)}
    replica = vocoder(modules)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in spectra}
    for name in spectra:
        replica.add(name, SpeechParameters())
    start = 0
    while replica.requests:
        for name, frames in spectra.items():
            piece = frames[start : start + 20]
            if name in replica.requests and len(piece):
                replica.offer(name, GenerationInput(len(piece), piece))
            if name in replica.requests and start + 20 >= len(frames):
                replica.close_input(name)
        start += 20
        for output in replica.step({}):
            if output.output is not None:
                parts[output.request_id].append(output.output.samples)
    for name, frames in spectra.items():
        alone = sound(vocoder(modules), frames, [len(frames)])
        assert relative(np.concatenate(parts[name]), alone) < 1e-5


def test_the_cache_spares_more_and_errs_more_as_its_setting_grows(modules: Any) -> None:
    codes = {"a": make_codes(40, 4)}
    exact = mels(token2mel(modules, WHOLE), codes)["a"]
    errors, shares = [], []
    for largest in (0.01, 0.05, 0.5):
        cache = StepCacheDeployment(largest_change=largest, longest_run=2)
        replica = token2mel(modules, DiffusionDeployment(look_ahead_blocks=None, cache=cache))
        frames = mels(replica, codes)["a"]
        errors.append(float((frames - exact).norm() / exact.norm()))
        shares.append(replica.count.share)
    assert shares[0] < shares[1] < shares[2]
    assert 0.0 < errors[0] < errors[1] < errors[2]
    assert errors[1] < 0.01
    assert shares[1] > 0.2


def test_noise_is_the_requests_own(modules: Any) -> None:
    codes = make_codes(8, 5)

    def frames(seed: int | None) -> torch.Tensor:
        replica = token2mel(modules, WHOLE)
        replica.add("a", SpeechParameters(seed=seed))
        replica.offer("a", DiffusionInput(len(codes), codes))
        replica.close_input("a")
        outputs = [output for _ in range(36) for output in replica.step({})]
        return outputs[-1].output.frames

    assert torch.equal(frames(1), frames(1))
    assert not torch.equal(frames(1), frames(2))
    assert not torch.equal(frames(None), frames(None))


def test_a_code_that_is_no_sound_is_refused(modules: Any) -> None:
    replica = token2mel(modules, WHOLE)
    replica.add("a", SpeechParameters())
    with pytest.raises(ValueError, match=f"Code {LAST_CODE + 1} is none of the {LAST_CODE + 1}"):
        replica.offer("a", DiffusionInput(2, np.array([1, LAST_CODE + 1])))
