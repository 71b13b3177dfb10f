"""The Talker's steps on their way over a GPU, of which tensors without values stand for one."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.adapter import FeedRows
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from engine.hidden_states import HiddenStatesPayload
from pipelines.qwen2_5_omni.adapters import StatesToRows
from pipelines.qwen2_5_omni.checkpoint import load_speakers
from pipelines.qwen2_5_omni.pipeline import build_talker
from pipelines.qwen2_5_omni.rows import MARK
from pipelines.qwen2_5_omni.talker_tokens import tokens_of
from tests.pipelines.stepping import assert_steps_do_not_wait
from tests.synchronisation import DEVICE, no_synchronisation


def test_steps_do_not_wait_for_a_gpu(checkpoint: Path) -> None:
    """From the Thinker's states to the Talker's codes."""
    replica = build_talker(
        checkpoint, StageDeployment(max_requests=2, max_steps=64, compile="never")
    )
    assert isinstance(replica, AutoregressiveReplica)
    voice = list(load_speakers(checkpoint))[-1]
    tokens = tokens_of(checkpoint, voice)
    prompt = (5, tokens.media[0], tokens.media[0], 6, tokens.media[0])
    states = torch.zeros(len(prompt) + 1, replica.model.vector_width, device=DEVICE)
    with no_synchronisation():
        adapter = StatesToRows(tokens)
        adapter.push(HiddenStatesPayload(0, prompt, len(prompt), states[:-1], states[:-1]))
        adapter.push(HiddenStatesPayload(5, (7,), len(prompt), states[-1:], states[-1:]))
        adapter.push(HiddenStatesPayload(6, (8,), len(prompt), states[-1:], states[-1:]))
        adapter.close()
        payloads = [adapter.pull() for _ in range(3)]
    assert all(isinstance(payload, FeedRows) for payload in payloads)
    rows = [payload for payload in payloads if payload is not None]
    assert [len(payload.values) for payload in rows] == [len(prompt) + 2, 1, 1]
    assert rows[0].values[:, MARK].tolist() == [-1] * len(prompt) + [tokens.begin, -1]
    assert_steps_do_not_wait(replica, rows)
    replica.close()


def test_only_states_of_sound_stand_without_embeddings(checkpoint: Path) -> None:
    tokens = tokens_of(checkpoint, next(iter(load_speakers(checkpoint))))
    sound = tokens.media[0]
    prompt = (5, sound, sound, 6, sound)
    adapter = StatesToRows(tokens)
    ones = torch.ones(6, 2)
    adapter.push(HiddenStatesPayload(0, prompt, len(prompt), ones[:-1], 10 * ones[:-1]))
    # The same token in the answer is one of text.
    adapter.push(HiddenStatesPayload(5, (sound,), len(prompt), ones[-1:], 10 * ones[-1:]))
    rows = adapter.pull()
    assert rows is not None
    assert rows.vectors is not None
    assert rows.vectors[:, 0].tolist() == [11, 10, 10, 11, 10, 0, 11]
