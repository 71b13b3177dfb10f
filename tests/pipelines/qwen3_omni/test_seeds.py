"""A seeded answer is the same whether its prompt is read whole or in parts, alone or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from vllm.tokenizers import get_tokenizer

from engine import SpeechParameters, TextPayload
from engine.core import CoreSettings
from engine.deploy_config import StageDeployment
from engine.text_replica import TextReplica
from engine.text_request import TextPrompt
from pipelines.qwen3_omni.pipeline import build_thinker
from tests.pipelines.qwen3_omni.conversing import Turn, run

PROMPT = TextPrompt(tuple(range(5, 60)), max_tokens=12, temperature=1.0)


def answers(replica: TextReplica, seeds: list[int], prompt: TextPrompt = PROMPT) -> list[str]:
    """What is written, all at once."""
    turns = [Turn(str(s), [prompt], parameters=SpeechParameters(seed=s)) for s in seeds]
    run(replica, turns)
    return [
        "".join(output.text for output in turn.outputs if isinstance(output, TextPayload))
        for turn in turns
    ]


@pytest.fixture(scope="module")
def whole(checkpoint: Path) -> tuple[CoreSettings, list[str]]:
    """How a replica is built that reads prompts whole, and what it answers alone to each seed."""
    deployment = StageDeployment(max_requests=4, max_steps=256, compile="never")
    replica = build_thinker(checkpoint, deployment)
    assert isinstance(replica, TextReplica)
    wanted = [answers(replica, [seed])[0] for seed in range(3)]
    replica.close()
    return replica.settings, wanted


@pytest.mark.parametrize("states", [True, False], ids=["states", "words-alone"])
def test_invariant_10_seeds_repeat_however_a_prompt_is_parted(
    checkpoint: Path, whole: tuple[CoreSettings, list[str]], states: bool
) -> None:
    settings, wanted = whole
    assert len(set(wanted)) == 3
    layer = settings.hidden_layer if states else None
    parted = TextReplica(
        replace(settings, max_step_tokens=16, hidden_layer=layer), get_tokenizer(str(checkpoint))
    )
    assert answers(parted, [0, 1, 2]) == wanted
    assert answers(parted, [1], replace(PROMPT, hidden_states=states)) == wanted[1:2]
    parted.close()
