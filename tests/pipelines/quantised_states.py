"""What Thinkers of quantised checkpoints compute, beside what their numbers say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from engine import SpeechParameters
from engine.deploy_config import StageDeployment
from engine.hidden_states import HiddenStatesPayload
from engine.stage import Replica
from engine.text_replica import TextReplica
from engine.text_request import TextPrompt

PROMPT = tuple(range(40, 100))

HALF = StageDeployment(
    device="cpu", max_requests=4, max_steps=256, compile="never", dtype="bfloat16"
)


def prompt_states(
    build: Callable[[Path, StageDeployment], Replica],
    folder: Path,
    deployment: StageDeployment = HALF,
) -> torch.Tensor:
    """The states that a Thinker gives of one prompt, shape [positions, hidden]."""
    replica = build(folder, deployment)
    assert isinstance(replica, TextReplica)
    replica.add("a", SpeechParameters())
    replica.offer("a", TextPrompt(token_ids=PROMPT, max_tokens=1, hidden_states=True))
    replica.close_input("a")
    states = []
    while replica.ready({}):
        states += [made.output for made in replica.step({})]
    replica.close()
    return torch.cat([s.states for s in states if isinstance(s, HiddenStatesPayload)]).float()
