"""The Talker on vLLM against the reference: codes of whole answers, alone and in a batch."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine.adapter import FeedRows, StepOutput
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from engine.hidden_states import HiddenStatesPayload
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
from tests.pipelines.stepping import assert_steps_do_not_wait
from tests.synchronisation import DEVICE, no_synchronisation


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


def test_steps_do_not_wait_for_a_gpu(talker: AutoregressiveReplica, checkpoint: Path) -> None:
    """From the Thinker's states to the Talker's codes."""
    facts = read_checkpoint(checkpoint)
    tokens = facts.tokens
    begin, role = tokens.message_begin, tokens.user
    prompt = (begin, role, 5, tokens.media[0], tokens.media[0], 5, 6, begin, 7, 8)
    states = torch.zeros(len(prompt) + 2, tokens.thinker_hidden, device=DEVICE)
    with no_synchronisation():
        payloads = [
            HiddenStatesPayload(0, prompt, len(prompt), states[:-2], states[:-2]),
            HiddenStatesPayload(len(prompt), (5, 6), len(prompt), states[-2:], states[-2:]),
        ]
        rows = rows_of(payloads, facts, next(iter(facts.speakers)))
    (first, end) = rows
    assert isinstance(first, FeedRows)
    assert isinstance(end, FeedRows)
    assert first.vectors is not None
    assert first.vectors.device == DEVICE
    # What the user said, the answer's opening, and one more token of the answer.
    assert (first.prompt_rows, len(first.values), len(end.values)) == (7 + 9, 7 + 10, 1)
    assert_steps_do_not_wait(talker, [first, end])


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
