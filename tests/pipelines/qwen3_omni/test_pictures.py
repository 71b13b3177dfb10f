"""Pictures: the Thinker's words and the Talker's codes are those of the reference."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import Qwen3OmniMoeForConditionalGeneration

from engine import Chat, ChatMessage, InvalidRequestError, PictureContent
from engine.autoregressive import AutoregressiveReplica
from engine.deploy_config import StageDeployment
from engine.hidden_states import HiddenStatesPayload
from engine.text_replica import TextReplica
from pipelines.qwen.hearing import Hearing
from pipelines.qwen.prompts import ChatToPrompt
from pipelines.qwen3_omni.configuration import read_checkpoint
from pipelines.qwen3_omni.pipeline import build_talker, build_thinker
from tests.pipelines.qwen3_omni.conversing import (
    ANSWER_TOKENS,
    SPEECH_STEPS,
    Turn,
    reference_answer,
    reference_inputs,
    rows_of,
    run,
    sound,
)

DEPLOYMENT = StageDeployment(
    device="cpu",
    max_requests=8,
    max_steps=1024,
    max_step_tokens=64,
    key_value_cache_bytes=64 * 2**20,
    compile="never",
)
"""Prompts are computed in pieces: some begin or end within a picture, one lies within."""


def picture(width: int, height: int, seed: int) -> PictureContent:
    """A picture like no other."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return PictureContent(pixels)


def conversations() -> list[Chat]:
    """A picture, one with a sound, two at once and later another, wide and high ones."""
    said = [
        (ChatMessage("user", "What is this?", pictures=(picture(150, 100, 1),)),),
        (ChatMessage("user", "", (), None, (sound(1.3, 2),), (picture(64, 200, 2),)),),
        (
            ChatMessage("system", "Be brief."),
            ChatMessage("user", "Two", pictures=(picture(64, 64, 3), picture(300, 90, 4))),
            ChatMessage("assistant", "Yes."),
            ChatMessage("user", "And?", (), None, (sound(1.1, 3),), (picture(100, 100, 5),)),
        ),
        (
            ChatMessage("user", "Look", pictures=(picture(420, 300, 6),)),
            ChatMessage("assistant", "A picture."),
            ChatMessage("user", "Of what?"),
        ),
    ]
    return [Chat(messages, max_tokens=ANSWER_TOKENS, temperature=0.0) for messages in said]


@pytest.fixture(scope="module")
def thinker(checkpoint: Path) -> Generator[TextReplica]:
    """A replica of the Thinker."""
    replica = build_thinker(checkpoint, DEPLOYMENT)
    assert isinstance(replica, TextReplica)
    yield replica
    replica.close()


@pytest.fixture(scope="module")
def talker(checkpoint: Path) -> Generator[AutoregressiveReplica]:
    """A replica of the Talker."""
    replica = build_talker(checkpoint, DEPLOYMENT)
    assert isinstance(replica, AutoregressiveReplica)
    yield replica
    replica.close()


@pytest.fixture
def seeing(
    reference: Qwen3OmniMoeForConditionalGeneration,
) -> Generator[Qwen3OmniMoeForConditionalGeneration]:
    """The reference, whose Talker looks for the Thinker's audio configuration in its own.

    It only does so where there are pictures and sounds, and fails on it.
    """
    heard = reference.config.thinker_config.audio_config
    with mock.patch.object(reference.talker.config, "audio_config", heard, create=True):
        yield reference


def seen_inputs(chat: Chat, hearing: Hearing) -> dict[str, torch.Tensor]:
    """What the reference is given."""
    pictures = [
        Image.fromarray(seen.pixels) for message in chat.messages for seen in message.pictures
    ]
    made = hearing.processor.image_processor(images=pictures, return_tensors="pt")
    return reference_inputs(chat, hearing) | dict(made)


def spoken(name: str, chat: Chat, hearing: Hearing, joins: int) -> Turn:
    """A spoken turn of a conversation."""
    adapter = ChatToPrompt(hearing, speaks=True)
    adapter.push(chat)
    return Turn(name, [adapter.pull()], joins=joins)


@pytest.mark.parametrize("together", [False, True], ids=["alone", "in-a-batch"])
def test_words_states_and_codes_equal_the_reference(
    thinker: TextReplica,
    talker: AutoregressiveReplica,
    hearing: Hearing,
    checkpoint: Path,
    seeing: Qwen3OmniMoeForConditionalGeneration,
    together: bool,
) -> None:
    """From the pixels to the codes, through our Thinker and Talker."""
    facts = read_checkpoint(checkpoint)
    speaker = next(iter(facts.speakers))
    eos = hearing.processor.tokenizer.eos_token_id
    layer = seeing.config.talker_config.accept_hidden_layer
    chats = conversations()
    thought = [spoken(f"{i}", chat, hearing, i) for i, chat in enumerate(chats)]
    for turns in [thought] if together else [[turn] for turn in thought]:
        if not together:
            turns[0].joins = 0
        run(thinker, turns)
    states = [[o for o in t.outputs if isinstance(o, HiddenStatesPayload)] for t in thought]
    voiced = [
        Turn(f"{i}", rows_of(payloads, facts, speaker), joins=i, leaves=SPEECH_STEPS)
        for i, payloads in enumerate(states)
    ]
    for turns in [voiced] if together else [[turn] for turn in voiced]:
        if not together:
            turns[0].joins = 0
        run(talker, turns)
    for chat, payloads, turn in zip(chats, states, voiced, strict=True):
        inputs = seen_inputs(chat, hearing)
        result = seeing.thinker.generate(
            **inputs,
            max_new_tokens=ANSWER_TOKENS,
            do_sample=False,
            eos_token_id=eos,
            output_hidden_states=True,
            return_dict_in_generate=True,
        )
        tokens = [token for payload in payloads for token in payload.token_ids]
        assert tokens == result.sequences[0, :-1].tolist()
        expected = torch.cat([hidden[layer] for hidden in result.hidden_states], 1)[0]
        found = torch.cat([payload.states for payload in payloads])
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        wanted = reference_answer(seeing, chat, hearing, speaker, inputs).codes.numpy()
        made = np.stack([output.codes for output in turn.outputs])
        assert np.array_equal(made[: len(wanted)], wanted)
    assert thinker.key_value_blocks_in_use() == talker.key_value_blocks_in_use() == 0


def test_a_picture_changes_what_is_said_and_its_shape_matters_to_the_talker(
    thinker: TextReplica, hearing: Hearing, checkpoint: Path
) -> None:
    """Guards the test above: pictures are no decoration of it."""
    facts = read_checkpoint(checkpoint)
    chat = conversations()[0]
    turn = spoken("seen", chat, hearing, 0)
    run(thinker, [turn])
    payloads = [o for o in turn.outputs if isinstance(o, HiddenStatesPayload)]
    rows = rows_of(payloads, facts, next(iter(facts.speakers)))[0]
    (item,) = turn.payloads[0].media
    places = rows.places
    assert places.shape == (3, rows.prompt_rows)
    # Time stands still within a picture, whose rows and columns count for themselves.
    first = np.flatnonzero(places[2] != places[0])[0] - 1
    block = places[:, first : first + item.length]
    assert len(set(block[0])) == 1
    assert len(set(map(tuple, block[1:].T))) == item.length
    assert places.max() < rows.prompt_rows - 1
    other = Chat(
        (ChatMessage("user", "What is this?", pictures=(picture(150, 100, 9),)),),
        max_tokens=ANSWER_TOKENS,
        temperature=0.0,
    )
    again = spoken("other", other, hearing, 0)
    run(thinker, [again])
    assert [o.token_ids for o in again.outputs if isinstance(o, HiddenStatesPayload)] != [
        o.token_ids for o in payloads
    ]


def test_equal_pictures_are_encoded_once_and_a_band_is_refused(hearing: Hearing) -> None:
    """By their pixels; and the reference's processor sees no picture 200 times as long as wide."""
    assert hearing.seeing.see(picture(80, 80, 1)).identifier == (
        hearing.seeing.see(picture(80, 80, 1)).identifier
    )
    assert hearing.seeing.see(picture(80, 80, 1)).identifier != (
        hearing.seeing.see(picture(80, 80, 2)).identifier
    )
    with pytest.raises(InvalidRequestError, match="5 by 2000 pixels cannot be seen"):
        hearing.seeing.see(picture(5, 2000, 1))
    assert hearing.seeing.see(picture(1, 1, 1)).length > 0
