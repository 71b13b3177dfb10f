"""The Talker on vLLM against the reference: codes of whole answers, alone and in a batch."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine.adapter import StepOutput
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from pipelines.qwen3_omni.configuration import read_checkpoint
from pipelines.qwen3_omni.hearing import hearing_of
from pipelines.qwen3_omni.pipeline import build_talker
from tests.pipelines.qwen3_omni.conversing import (
    SPEECH_STEPS,
    Turn,
    conversations,
    reference_answer,
    reference_inputs,
    rows_of,
    run,
    states_of_the_reference,
)


@pytest.fixture(scope="module")
def talker(checkpoint: Path) -> Generator[AutoregressiveReplica]:
    """A replica of the Talker."""
    deployment = StageDeployment(
        max_requests=9, max_steps=512, key_value_cache_bytes=64 * 2**20, compile="never"
    )
    replica = build_talker(checkpoint, deployment)
    assert isinstance(replica, AutoregressiveReplica)
    yield replica
    replica.close()


@pytest.mark.parametrize("together", [False, True], ids=["alone", "in-a-batch"])
def test_codes_equal_the_reference(
    talker: AutoregressiveReplica,
    checkpoint: Path,
    reference: Qwen3OmniMoeForConditionalGeneration,
    together: bool,
) -> None:
    """Greedy codes of eight answers in two voices, frame by frame."""
    hearing, facts = hearing_of(checkpoint), read_checkpoint(checkpoint)
    eos = hearing.processor.tokenizer.eos_token_id
    speakers = [list(facts.speakers)[i % len(facts.speakers)] for i in range(8)]
    chats = conversations()
    turns = []
    for i, (chat, speaker) in enumerate(zip(chats, speakers, strict=True)):
        payloads = states_of_the_reference(reference, reference_inputs(chat, hearing), eos)
        rows = rows_of(payloads, facts, speaker)
        turns.append(Turn(f"turn-{i}", rows, joins=i, leaves=SPEECH_STEPS))
    if together:
        run(talker, [*turns, Turn("left", turns[3].payloads, joins=2, leaves=5)])
    else:
        for turn in turns:
            turn.joins = 0
            run(talker, [turn])
    ended = 0
    for chat, speaker, turn in zip(chats, speakers, turns, strict=True):
        wanted = reference_answer(reference, chat, hearing, speaker).codes.numpy()
        assert all(isinstance(output, StepOutput) for output in turn.outputs)
        made = np.stack([output.codes for output in turn.outputs])
        # Where the reference ends by its limit, it never completes the last token's frame.
        limited = len(wanted) == SPEECH_STEPS - 1
        ended += not limited
        assert np.array_equal(made[: len(wanted)], wanted)
        assert limited or len(made) == len(wanted)
    assert ended > 0, "the checkpoint should end some answers by itself"
    assert len(talker.feeds) == 0
    assert talker.key_value_blocks_in_use() == 0
