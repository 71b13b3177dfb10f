"""The Thinker on vLLM against the reference: tokens, hidden states, what is kept."""

from __future__ import annotations

import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import AudioContent, Chat, TextPayload, UsagePayload
from engine.hidden_states import HiddenStatesPayload
from engine.text_replica import TextReplica
from pipelines.qwen.hearing import Hearing
from pipelines.qwen.prompts import ChatToPrompt
from tests.pipelines.qwen3_omni.conversing import (
    ANSWER_TOKENS,
    Turn,
    conversations,
    reference_inputs,
    run,
    sound,
)


def turn_of(name: str, chat: Chat, hearing: Hearing, **options: int) -> Turn:
    """A spoken turn of a conversation."""
    adapter = ChatToPrompt(hearing, speaks=True)
    adapter.push(chat)
    return Turn(name, [adapter.pull()], **options)


def states_of(turn: Turn) -> tuple[list[int], torch.Tensor, torch.Tensor]:
    """The token ids, embeddings and states that a turn gave, in order."""
    payloads = [output for output in turn.outputs if isinstance(output, HiddenStatesPayload)]
    position = 0
    for payload in payloads:
        assert payload.start == position
        position += len(payload.states)
    tokens = [token for payload in payloads for token in payload.token_ids]
    return (
        tokens,
        torch.cat([payload.embeddings for payload in payloads]),
        torch.cat([payload.states for payload in payloads]),
    )


def text_of(turn: Turn) -> str:
    """The text that a turn gave."""
    return "".join(output.text for output in turn.outputs if isinstance(output, TextPayload))


def usage_of(turn: Turn) -> UsagePayload:
    """What a turn's answer took."""
    (usage,) = [output for output in turn.outputs if isinstance(output, UsagePayload)]
    return usage


@pytest.mark.parametrize("together", [False, True], ids=["alone", "in-a-batch"])
def test_tokens_and_states_equal_the_reference(
    thinker: TextReplica,
    hearing: Hearing,
    reference: Qwen3OmniMoeForConditionalGeneration,
    together: bool,
) -> None:
    """Greedy answers to eight conversations, their tokens and every position's states."""
    chats = conversations()
    turns = [turn_of(f"turn-{i}", chat, hearing, joins=i) for i, chat in enumerate(chats)]
    if together:
        run(thinker, [*turns, turn_of("left", chats[3], hearing, joins=2, leaves=5)])
    else:
        for turn in turns:
            turn.joins = 0
            run(thinker, [turn])
    layer = reference.config.talker_config.accept_hidden_layer
    for chat, turn in zip(chats, turns, strict=True):
        inputs = reference_inputs(chat, hearing)
        result = reference.thinker.generate(
            **inputs,
            max_new_tokens=ANSWER_TOKENS,
            do_sample=False,
            eos_token_id=hearing.processor.tokenizer.eos_token_id,
            output_hidden_states=True,
            return_dict_in_generate=True,
        )
        tokens, embeddings, states = states_of(turn)
        assert tokens == result.sequences[0, :-1].tolist()
        answer = result.sequences[0, inputs["input_ids"].shape[1] :]
        assert usage_of(turn).output_tokens == len(answer)
        # The bytes of a character that the answer's end cuts through are no text.
        text = hearing.processor.tokenizer.decode(answer, skip_special_tokens=True)
        assert text_of(turn).rstrip("\ufffd") == text.rstrip("\ufffd")
        expected = torch.cat([hidden[0] for hidden in result.hidden_states], 1)[0]
        torch.testing.assert_close(embeddings, expected, rtol=1e-4, atol=1e-4)
        expected = torch.cat([hidden[layer] for hidden in result.hidden_states], 1)[0]
        torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-4)
    assert thinker.hidden_states is not None
    assert len(thinker.hidden_states) == 0
    assert thinker.key_value_blocks_in_use() == 0


@pytest.mark.parametrize("count", [400, 16_000, 16_001, 16_100, 16_159, 143_923, 262_144])
def test_a_sound_of_any_length_is_heard_as_the_reference_makes_it(
    hearing: Hearing, count: int
) -> None:
    """The features that reach the encoder are the reference processor's, bit by bit."""
    samples = sound(count / 16_000, 7).samples
    heard = hearing.hear(AudioContent(samples))
    expected = hearing.processor(
        text=hearing.processor.audio_token, audio=[samples], return_tensors="pt"
    )
    mask = expected["feature_attention_mask"][0].bool()
    features = torch.cat([window.data["input_audio_features"].data for window in heard], dim=1)
    assert torch.equal(features, expected["input_features"][0][:, mask])
    assert sum(window.length for window in heard) == expected["input_ids"].shape[1]


def test_a_written_answer_uses_what_an_earlier_one_left(
    thinker: TextReplica, hearing: Hearing
) -> None:
    """Without hidden states, the KV of an equal beginning is shared; with them it is not."""
    chat = conversations()[6]
    cached: dict[bool, list[int]] = {}
    for speaks in (False, True):
        turns = []
        for name in ("first", "second"):
            adapter = ChatToPrompt(hearing, speaks=speaks)
            adapter.push(chat)
            turns.append(Turn(name, [adapter.pull()]))
            run(thinker, turns[-1:])
        cached[speaks] = [usage_of(turn).cached_tokens for turn in turns]
    assert cached[False][1] > 0
    assert cached[True] == [0, 0]
