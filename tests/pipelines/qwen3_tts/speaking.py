"""Speaks requests on a Talker's replica, together, with text that comes all at once or in bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine import SpeechParameters, TextPayload
from engine.adapter import Adapter
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from engine.step_sampling import StepSampling
from pipelines.qwen3_tts.pipeline import build_talker, text_to_rows
from pipelines.qwen3_tts.rows import VoicePrompt

STEPS = 24
GREEDY = StepSampling(repetition_penalty=1.05, minimum_steps=2, maximum_steps=STEPS)


@dataclass(frozen=True)
class Case:
    """A request; `joins` is the step at which it comes, `bits` how its text is cut."""

    text: str
    parameters: SpeechParameters
    voice: VoicePrompt | None = None
    joins: int = 0
    bits: int | None = None

    def reference_arguments(self) -> dict[str, Any]:
        asked = self.parameters
        return {
            "language": asked.language or "auto",
            "speaker": asked.voice,
            "instruct": asked.instructions,
            "whole": asked.whole_text,
            "steps": STEPS + 1,
        }


def build(
    folder: Path,
    sampling: StepSampling = GREEDY,
    cache_bytes: int = 2**25,
    max_steps: int = 512,
    max_step_tokens: int = 2048,
    max_requests: int = 8,
) -> AutoregressiveReplica:
    deployment = StageDeployment(
        compile="never",
        max_requests=max_requests,
        max_steps=max_steps,
        max_step_tokens=max_step_tokens,
        key_value_cache_bytes=cache_bytes,
    )
    replica = build_talker(folder, deployment)
    assert isinstance(replica, AutoregressiveReplica)
    replica.sampling_of = lambda parameters: sampling
    return replica


@dataclass
class Speaker:
    """One request under way."""

    name: str
    case: Case
    adapter: Adapter
    left: str
    closed: bool = False
    codes: list[np.ndarray] = field(default_factory=list)

    def feed(self, replica: AutoregressiveReplica) -> None:
        """The next bit of text, and the rows that it makes certain."""
        if self.closed or self.name not in replica.requests:
            return
        size = self.case.bits or len(self.left)
        bit, self.left = self.left[:size], self.left[size:]
        self.adapter.push(TextPayload(bit))
        if not self.left:
            self.adapter.close()
        while (rows := self.adapter.pull()) is not None:
            replica.offer(self.name, rows)
        if self.adapter.finished:
            self.closed = True
            replica.close_input(self.name)


def speak(
    folder: Path, replica: AutoregressiveReplica, cases: list[Case], hold_every: int = 0
) -> list[np.ndarray]:
    """All codes of the cases, spoken together."""
    speakers = []
    for index, case in enumerate(cases):
        adapter = text_to_rows({"talker": folder}, case.parameters)
        if case.voice is not None:
            adapter.push(case.voice)
        speakers.append(Speaker(f"r{index}", case, adapter, case.text))
    by_name = {speaker.name: speaker for speaker in speakers}
    for turn in range(2000):
        for index, speaker in enumerate(speakers):
            if speaker.case.joins == turn:
                replica.add(speaker.name, speaker.case.parameters)
            if speaker.case.joins <= turn:
                speaker.feed(replica)
            if hold_every and speaker.name in replica.requests:
                replica.set_credit(speaker.name, (turn + index) % hold_every != 0)
        for output in replica.step({}):
            if output.output is not None:
                by_name[output.request_id].codes.append(output.output.codes)
        if turn >= max(case.joins for case in cases) and not replica.requests:
            break
    assert not replica.requests
    replica.step({})
    assert replica.key_value_blocks_in_use() == 0
    width = replica.model.codebooks
    return [np.array(s.codes, np.int64).reshape(-1, width) for s in speakers]
