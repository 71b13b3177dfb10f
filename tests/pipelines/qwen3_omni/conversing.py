"""Conversations to try, the reference's way through them, and a driver of replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import BatchFeature, Qwen3OmniMoeForConditionalGeneration

from engine import AudioContent, Chat, ChatMessage
from engine.hidden_states import HiddenStatesPayload
from engine.request import SpeechParameters
from engine.stage import Replica
from pipelines.qwen.hearing import Hearing
from pipelines.qwen.prompts import prompt_of
from pipelines.qwen3_omni.adapters import StatesToRows
from pipelines.qwen3_omni.configuration import Checkpoint

ANSWER_TOKENS = 24
SPEECH_STEPS = 40
GREEDY = SpeechParameters(temperature=0.0)


def sound(seconds: float, seed: int) -> AudioContent:
    """A sound like none that any other seed gives, 16 kHz."""
    generator = np.random.default_rng(seed)
    count = round(16_000 * seconds)
    pitch = 80.0 + 20.0 * seed
    tone = np.sin(2 * np.pi * pitch * np.arange(count) / 16_000)
    noise = generator.normal(0.0, 0.05, count)
    return AudioContent((0.3 * tone + noise).astype(np.float32))


def conversations() -> list[Chat]:
    """Eight conversations: written, spoken, both, with and without a history, long and short.

    Where there are several sounds, each has at least a second: the reference's encoder hears a
    shorter one differently beside others than alone.
    """
    said = sound(1.3, 2)
    return [
        _chat(ChatMessage("user", "Hello there")),
        _chat(ChatMessage("user", "", sounds=(sound(1.0, 1),))),
        _chat(ChatMessage("user", "What is this?", sounds=(said,))),
        _chat(
            ChatMessage("system", "Be brief."),
            ChatMessage("user", "", sounds=(said,)),
            ChatMessage("assistant", "A tone."),
            ChatMessage("user", "And now?", sounds=(sound(1.431, 3),)),
        ),
        _chat(ChatMessage("user", "", sounds=(sound(0.431, 6),))),
        _chat(ChatMessage("user", "", sounds=(sound(2.0071, 4), sound(1.7, 5)))),
        _chat(ChatMessage("user", "Count to nine, and then back to one again, please.")),
        _chat(ChatMessage("user", "Why"), ChatMessage("assistant", "So"), ChatMessage("user", "?")),
    ]


def _chat(*messages: ChatMessage) -> Chat:
    return Chat(messages, max_tokens=ANSWER_TOKENS, temperature=0.0)


def reference_inputs(chat: Chat, hearing: Hearing) -> dict[str, torch.Tensor]:
    """What the reference's processor makes of a conversation, each sound for itself."""
    token_ids, _ = prompt_of(chat, hearing)
    inputs = {
        "input_ids": torch.tensor([token_ids]),
        "attention_mask": torch.ones(1, len(token_ids), dtype=torch.long),
    }
    heard = [_alone(s, hearing) for message in chat.messages for s in message.sounds]
    if heard:
        frames = max(int(one["feature_attention_mask"].sum()) for one in heard)
        features = torch.zeros(len(heard), 128, frames)
        mask = torch.zeros(len(heard), frames, dtype=torch.long)
        for row, one in enumerate(heard):
            count = one["input_features"].shape[-1]
            features[row, :, :count] = one["input_features"][0]
            mask[row, :count] = one["feature_attention_mask"][0]
        inputs |= {"input_features": features, "feature_attention_mask": mask}
    return inputs


def _alone(content: AudioContent, hearing: Hearing) -> BatchFeature:
    processor = hearing.processor
    return processor(text=processor.audio_token, audio=[content.samples], return_tensors="pt")


@dataclass
class Answer:
    """What the reference answers: text tokens, codes [steps, codebooks] and samples."""

    tokens: list[int]
    codes: torch.Tensor
    samples: torch.Tensor


def reference_answer(
    model: Qwen3OmniMoeForConditionalGeneration,
    chat: Chat,
    hearing: Hearing,
    speaker: str,
    inputs: dict[str, torch.Tensor] | None = None,
) -> Answer:
    """The reference's greedy answer, its codes caught on their way to its decoder."""
    inputs = reference_inputs(chat, hearing) if inputs is None else inputs
    caught: list[torch.Tensor] = []
    hook = model.code2wav.register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    try:
        sequences, samples = model.generate(
            **inputs,
            speaker=speaker,
            thinker_max_new_tokens=ANSWER_TOKENS,
            thinker_eos_token_id=hearing.processor.tokenizer.eos_token_id,
            thinker_do_sample=False,
            talker_max_new_tokens=SPEECH_STEPS,
            talker_do_sample=False,
        )
    finally:
        hook.remove()
    (codes,) = caught
    tokens = sequences[0, inputs["input_ids"].shape[1] :].tolist()
    return Answer(tokens, codes[0].T, samples.flatten())


def states_of_the_reference(
    model: Qwen3OmniMoeForConditionalGeneration, inputs: dict[str, torch.Tensor], eos: int
) -> list[HiddenStatesPayload]:
    """What the reference's Thinker gives, as a replica would give it, step by step."""
    layer = model.config.talker_config.accept_hidden_layer
    result = model.thinker.generate(
        **inputs,
        max_new_tokens=ANSWER_TOKENS,
        do_sample=False,
        eos_token_id=eos,
        output_hidden_states=True,
        return_dict_in_generate=True,
    )
    payloads, start = [], 0
    prompt = inputs["input_ids"].shape[1]
    for step in result.hidden_states:
        stop = start + step[0].shape[1]
        tokens = tuple(result.sequences[0, start:stop].tolist())
        payloads.append(HiddenStatesPayload(start, tokens, prompt, step[0][0], step[layer][0]))
        start = stop
    return payloads


def rows_of(payloads: list[HiddenStatesPayload], facts: Checkpoint, speaker: str) -> list[object]:
    """The Talker's rows."""
    adapter = StatesToRows(facts.tokens, facts.speakers[speaker])
    for payload in payloads:
        adapter.push(payload)
    adapter.close()
    rows = []
    while not adapter.finished:
        rows.append(adapter.pull())
    return rows


@dataclass
class Turn:
    """A request of a replica in a test.

    Attributes:
        name: Its identifier.
        payloads: What it is given, at once.
        joins: The step at which it joins.
        leaves: How many outputs it gives until it is aborted; None: it ends by itself.
        parameters: How it is to be spoken.
    """

    name: str
    payloads: Iterable[Any]
    joins: int = 0
    leaves: int | None = None
    parameters: SpeechParameters = GREEDY
    outputs: list[Any] = field(default_factory=list)
    open: bool = False
    done: bool = False


def run(replica: Replica, turns: list[Turn], watch: Callable[[int], None] | None = None) -> None:
    """Steps a replica until every turn is done."""
    by_name = {turn.name: turn for turn in turns}
    step = 0
    while not all(turn.done for turn in turns):
        for turn in turns:
            if turn.joins == step and not turn.open:
                turn.open = True
                replica.add(turn.name, turn.parameters)
                for payload in turn.payloads:
                    replica.offer(turn.name, payload)
                replica.close_input(turn.name)
        for made in replica.step({}):
            turn = by_name[made.request_id]
            if made.output is not None:
                turn.outputs.append(made.output)
            turn.done = turn.done or made.finished
            if turn.leaves is not None and len(turn.outputs) >= turn.leaves and not turn.done:
                replica.abort(turn.name)
                turn.done = True
        if watch is not None:
            watch(step)
        step += 1
