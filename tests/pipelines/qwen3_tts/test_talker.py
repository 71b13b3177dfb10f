"""Greedy codes against the reference's `generate`, token by token, for every variant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import SpeechParameters, TextPayload
from engine.autoregressive import AutoregressiveReplica
from engine.code_choice import CodeSampling
from engine.step_sampling import StepSampling
from pipelines.qwen3_tts.pipeline import text_to_rows
from pipelines.qwen3_tts.rows import VoicePrompt
from pipelines.qwen3_tts.text_stream import tokens_of
from tests.checkpoints.qwen3_tts import Variant
from tests.checkpoints.qwen3_tts_tokenizer import make_tokenizer
from tests.pipelines.qwen3_tts.conftest import REFERENCE_TEXT, some_sound
from tests.pipelines.qwen3_tts.reference_process import ReferenceProcess
from tests.pipelines.qwen3_tts.speaking import GREEDY, Case, build, speak
from tests.pipelines.stepping import assert_steps_do_not_wait

Checkpoints = dict[Variant, Path]

SENTENCE = "The morning train was late again, so we walked along the river."


def custom_voice_cases() -> list[Case]:
    def asked(voice: str, language: str | None = None, **others: object) -> SpeechParameters:
        return SpeechParameters(voice=voice, language=language, **others)  # type: ignore[arg-type]

    return [
        Case(SENTENCE, asked("vivian", "english")),
        Case(SENTENCE, asked("vivian", "english", whole_text=True), joins=1),
        Case("Nobody knew what it would cost.", asked("ryan"), joins=2, bits=1),
        Case("There is a voice.", asked("eric"), joins=3, bits=3),
        Case("There is a voice.", asked("eric", "chinese", whole_text=True), joins=5),
        Case(
            "Words are still coming: 12.50, naïve café!",
            asked("ryan", "german", instructions="Speak softly, please."),
            joins=8,
            bits=2,
        ),
        Case("Hi", asked("vivian"), joins=9),
        Case("what it would cost", asked("ryan", instructions="Loud"), joins=12, bits=5),
    ]


@pytest.fixture(scope="module")
def replica(checkpoints: Checkpoints) -> Iterator[AutoregressiveReplica]:
    made = build(checkpoints[Variant.CUSTOM_VOICE])
    yield made
    made.close()


@pytest.fixture(scope="module")
def expected(reference: ReferenceProcess, checkpoints: Checkpoints) -> list[np.ndarray]:
    folder = checkpoints[Variant.CUSTOM_VOICE]
    cases = custom_voice_cases()
    return [reference.codes(folder, c.text, **c.reference_arguments()) for c in cases]


def test_the_cases_end_by_themselves_and_at_the_limit(expected: list[np.ndarray]) -> None:
    lengths = [len(codes) for codes in expected]
    assert min(lengths) < 24
    assert max(lengths) > 10
    assert len({codes.tobytes() for codes in expected}) == len(expected)


def test_steps_do_not_wait_for_a_gpu(
    checkpoints: Checkpoints, replica: AutoregressiveReplica
) -> None:
    case = custom_voice_cases()[0]
    adapter = text_to_rows({"talker": checkpoints[Variant.CUSTOM_VOICE]}, case.parameters)
    adapter.push(TextPayload(case.text))
    adapter.close()
    rows = adapter.pull()
    assert rows is not None
    assert_steps_do_not_wait(replica, [rows])


def test_greedy_codes_equal_the_reference(
    checkpoints: Checkpoints, replica: AutoregressiveReplica, expected: list[np.ndarray]
) -> None:
    folder = checkpoints[Variant.CUSTOM_VOICE]
    for case, wanted in zip(custom_voice_cases(), expected, strict=True):
        alone = replace(case, joins=0, bits=None)
        assert np.array_equal(speak(folder, replica, [alone])[0], wanted), case


@pytest.mark.parametrize("hold_every", [0, 3])
def test_invariant_10_codes_in_a_mixed_batch_equal_the_reference(
    checkpoints: Checkpoints,
    replica: AutoregressiveReplica,
    expected: list[np.ndarray],
    hold_every: int,
) -> None:
    """Eight requests join and leave; some have their text at once, some letter by letter."""
    folder = checkpoints[Variant.CUSTOM_VOICE]
    made = speak(folder, replica, custom_voice_cases(), hold_every)
    for case, codes, wanted in zip(custom_voice_cases(), made, expected, strict=True):
        assert np.array_equal(codes, wanted), case


def test_repetition_is_penalised_as_in_the_reference(
    checkpoints: Checkpoints, replica: AutoregressiveReplica, reference: ReferenceProcess
) -> None:
    folder, usual = checkpoints[Variant.CUSTOM_VOICE], replica.sampling_of
    cases = [replace(case, joins=0) for case in custom_voice_cases()[:4]]
    made: dict[float, list[np.ndarray]] = {}
    try:
        for penalty in (1.0, 8.0):
            sampling = replace(GREEDY, repetition_penalty=penalty)
            replica.sampling_of = lambda parameters, chosen=sampling: chosen
            made[penalty] = speak(folder, replica, cases)
            for case, codes in zip(cases, made[penalty], strict=True):
                arguments = case.reference_arguments() | {"repetition_penalty": penalty}
                assert np.array_equal(codes, reference.codes(folder, case.text, **arguments))
    finally:
        replica.sampling_of = usual
    assert [c.tobytes() for c in made[1.0]] != [c.tobytes() for c in made[8.0]]


def test_seeds_repeat_alone_and_in_a_batch(
    checkpoints: Checkpoints, replica: AutoregressiveReplica
) -> None:
    folder, usual = checkpoints[Variant.CUSTOM_VOICE], replica.sampling_of
    warm = StepSampling(0.9, 50, repetition_penalty=1.05, minimum_steps=8, maximum_steps=16)
    codes = CodeSampling(0.9, 50)
    try:
        replica.sampling_of = lambda p: replace(warm, seed=p.seed, codes=codes)
        cases = [
            replace(case, parameters=replace(case.parameters, seed=seed))
            for seed, case in enumerate(custom_voice_cases())
        ]
        together = speak(folder, replica, cases)
        for index in (0, 3, 5):
            assert np.array_equal(speak(folder, replica, [cases[index]])[0], together[index])
        other = replace(cases[0], parameters=replace(cases[0].parameters, seed=99))
        assert not np.array_equal(speak(folder, replica, [other])[0], together[0])
    finally:
        replica.sampling_of = usual


def test_invariant_10_seeds_repeat_however_a_prompt_is_parted(
    checkpoints: Checkpoints, replica: AutoregressiveReplica
) -> None:
    """Who reads a part of its prompt draws no random numbers, neither for tokens nor for codes."""
    folder, usual = checkpoints[Variant.CUSTOM_VOICE], replica.sampling_of
    warm = StepSampling(0.9, 50, minimum_steps=8, maximum_steps=12, codes=CodeSampling(0.9, 50))
    cases = [
        replace(case, parameters=replace(case.parameters, seed=seed, whole_text=True))
        for seed, case in enumerate(custom_voice_cases()[:4])
    ]
    parted = build(folder, max_step_tokens=16)
    try:
        replica.sampling_of = parted.sampling_of = lambda p: replace(warm, seed=p.seed)
        wanted = [speak(folder, replica, [case])[0] for case in cases]
        for made, whole in zip(speak(folder, parted, cases), wanted, strict=True):
            assert np.array_equal(made, whole)
    finally:
        replica.sampling_of = usual
        parted.close()


def test_invariant_10_codes_after_preemptions_equal_the_reference(
    checkpoints: Checkpoints, reference: ReferenceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts, codes and padding are computed again where the KV cache was too small for all."""
    folder = checkpoints[Variant.CUSTOM_VOICE]
    small = build(folder, cache_bytes=2**20, max_steps=256)
    preempted: list[str] = []
    original = small.scheduler._preempt_request

    def preempt(request: Any, *arguments: Any, **named: Any) -> None:
        preempted.append(request.request_id)
        original(request, *arguments, **named)

    monkeypatch.setattr(small.scheduler, "_preempt_request", preempt)
    cases = [
        Case(
            SENTENCE,
            SpeechParameters(voice=voice, language=language, instructions="Slowly, please. " * 8),
        )
        for voice in ("vivian", "ryan")
        for language in ("english", "german", "chinese", "auto")
    ]
    made = speak(folder, small, cases)
    small.close()
    assert preempted
    assert max(len(codes) for codes in made) > 10
    for case, codes in zip(cases, made, strict=True):
        wanted = reference.codes(folder, case.text, **case.reference_arguments())
        assert np.array_equal(codes, wanted), case


def test_instructions_design_the_voice_as_in_the_reference(
    checkpoints: Checkpoints, reference: ReferenceProcess
) -> None:
    folder = checkpoints[Variant.VOICE_DESIGN]
    replica = build(folder)
    cases = [
        Case(SENTENCE, SpeechParameters(instructions="An old man, slow."), bits=4),
        Case(SENTENCE, SpeechParameters(instructions="A child.", whole_text=True), joins=2),
        Case(SENTENCE, SpeechParameters(language="chinese")),
    ]
    made = speak(folder, replica, cases)
    replica.close()
    for case, codes in zip(cases, made, strict=True):
        wanted = reference.codes(folder, case.text, **case.reference_arguments())
        assert np.array_equal(codes, wanted), case


def test_voices_are_cloned_as_in_the_reference(
    checkpoints: Checkpoints, reference: ReferenceProcess
) -> None:
    """From the speaker embedding alone, and in context, with the text streamed and not."""
    folder = checkpoints[Variant.BASE]
    sound = some_sound(1.3, 24_000)
    speaker, frames = reference.clone(folder, (sound, 24_000, REFERENCE_TEXT))
    tokenizer = make_tokenizer()
    words = tuple(tokens_of(tokenizer, REFERENCE_TEXT))
    in_context = VoicePrompt(speaker, frames, words)
    cases = [
        Case("Hello there, you.", SpeechParameters(), in_context, bits=2),
        Case(SENTENCE, SpeechParameters(language="english"), in_context, joins=1, bits=7),
        Case(SENTENCE, SpeechParameters(whole_text=True), in_context, joins=2),
        Case(SENTENCE, SpeechParameters(), VoicePrompt(speaker), joins=4, bits=1),
        Case(SENTENCE, SpeechParameters(whole_text=True), VoicePrompt(speaker)),
    ]
    replica = build(folder)
    made = speak(folder, replica, cases)
    replica.close()
    assert frames is not None
    # Both ways of the reference to lay text beside frames are met.
    assert len(words) + len(tokens_of(tokenizer, SENTENCE)) > len(frames) + 1
    for case, codes in zip(cases, made, strict=True):
        in_full = case.voice is in_context
        heard = (sound, 24_000, REFERENCE_TEXT if in_full else None)
        wanted = reference.codes(folder, case.text, sound=heard, **case.reference_arguments())
        assert np.array_equal(codes, wanted), case
